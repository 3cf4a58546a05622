"use strict";
// The colours of SQL in cells of `%%sqlflow`, in JupyterLab 4 and Notebook 7: a prebuilt extension, written by hand.
//
// JupyterLab loads extensions as containers of webpack's module federation. A container is an object with two
// functions: `init` receives the modules that the application shares, `get` returns a module of the extension; so no
// bundler is needed. The language of a CodeMirror editor is the first value of its facet `language`: ours is put
// before Python while the cell begins with the magic, and the colours are those of the theme.
(() => {
  const NAME = "sqlflow-edl";

  // Tokens --------------------------------------------------------------------------------------------------------

  // The console's words: tests/sqlflow_edl/notebook/test_highlighting.py compares them.
  const KEYWORDS = new Set(`
    ALL ALTER ANALYZE AND APPEND AS ASC AVG BETWEEN BY CASE CAST CMD COALESCE COLUMN CONSTRAINT COUNT CREATE CROSS
    DEFAULT DELETE DESC DESCRIBE DISTINCT DROP ELSE END EVALUATE EXCEPT EXISTS EXPLAIN FALSE FILTER FROM FULL
    GROUP HAVING IF IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LABEL LATERAL LEFT LIKE LIMIT MAX MAXIMIZE MIN
    MINIMIZE MODEL MODELS NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION PREDICT QUALIFY RECURSIVE REPLACE RIGHT
    RUN SELECT SET SHOW SUM TABLE TARGET TEMP THEN TO TRAIN TRUE TRUNCATE UNION UNNEST UPDATE USING VALIDATE
    VALUES VIEW WHEN WHERE WINDOW WITH
  `.trim().split(/\s+/));
  const BEFORE = /^\s*(?:%%(?:capture|prun|time|timeit)(?!\S).*)?$/; // lines that may stand above the magic
  const MAGIC = /^\s*%%sqlflow(?!\S)/;

  // Rows: kind, which is a name of CodeMirror's tags; pattern; for a text that may span lines, how it ends.
  const TOKENS = [
    ["comment", /^--.*/],
    ["comment", /^\/\*/, () => "*/"],
    ["string", /^'/, () => "'"],
    ["string", /^\$(?:[\p{L}_]\w*)?\$/u, (opening) => opening],
    ["variableName", /^["`]/, (opening) => opening], // a quoted name
    ["number", /^(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?/i],
    ["propertyName", /^[\p{L}_][\p{L}\p{N}_$]*(?:\.[\p{L}_][\p{L}\p{N}_$]*)+/u], // train.epochs: no keyword
    ["word", /^[\p{L}_][\p{L}\p{N}_$]*/u],
    ["operator", /^(?:::|<<|<>|[<>!]=|->>?|\|\|)/],
    ["variableName.special", /^(?::[\p{L}_][\p{L}\p{N}_]*|\{\{.*?\}\})/u], // variables of the notebook
    ["bracket", /^[()[\]{}]/],
    ["operator", /^[-+*\/%=<>|&^~!?:@]/],
  ];

  function untilTheEnd(stream, state) {
    const { kind, end } = state.open;
    if (stream.skipTo(end)) {
      stream.match(end);
      state.open = null;
    } else {
      stream.skipToEnd();
    }
    return kind;
  }

  function sql(stream, state) {
    if (state.open) return untilTheEnd(stream, state);
    if (stream.eatSpace()) return null;
    for (const [kind, pattern, ending] of TOKENS) {
      const found = stream.match(pattern);
      if (!found) continue;
      if (ending) state.open = { kind, end: ending(found[0]) };
      if (kind !== "word") return kind;
      return KEYWORDS.has(found[0].toUpperCase()) ? "keyword" : "variableName";
    }
    stream.next();
    return null;
  }

  // Above and in the line of the magic, whose options come before the SQL.
  function head(stream, state) {
    if (stream.sol() && !stream.match(MAGIC)) {
      stream.skipToEnd();
      return "meta";
    }
    state.part = options;
    return "meta";
  }

  function options(stream, state) {
    if (stream.eatSpace()) return null;
    const option = !stream.sol() && stream.match(/^--?[A-Za-z][\w-]*/);
    state.part = !option ? sql : option[0] === "--debug" ? options : value;
    return option ? "attributeName" : sql(stream, state);
  }

  function value(stream, state) {
    if (stream.match(/^(?:\s*=\s*|\s+)/)) return null;
    state.part = options;
    return stream.match(/^(?:"[^"]*"|'[^']*'|\S+)/) ? "string" : null;
  }

  const PARSER = {
    name: "sqlflow",
    startState: () => ({ part: head, open: null }),
    token: (stream, state) => state.part(stream, state),
    blankLine() {},
    languageData: {
      commentTokens: { line: "--", block: { open: "/*", close: "*/" } },
      closeBrackets: { brackets: ["(", "[", "{", "'", '"', "`"] },
    },
  };

  // Editors -------------------------------------------------------------------------------------------------------

  function isOurs(lines) {
    for (const line of lines) if (!BEFORE.test(line)) return MAGIC.test(line);
    return false;
  }

  function plugin(codemirror, language, { Compartment, EditorState, Prec }) {
    const sqlflow = Prec.highest(language.StreamLanguage.define(PARSER));
    const added = new Compartment();
    const follow = EditorState.transactionExtender.of((change) => {
      const ours = change.docChanged && isOurs(change.newDoc.iterLines());
      const before = added.get(change.startState) === sqlflow;
      return change.docChanged && ours !== before ? { effects: added.reconfigure(ours ? sqlflow : []) } : null;
    });
    return {
      id: `${NAME}:highlighting`,
      description: "Highlights SQL in cells of %%sqlflow.",
      autoStart: true,
      requires: [codemirror.IEditorExtensionRegistry],
      activate: (_, registry) => registry.addExtension({
        name: NAME,
        factory: ({ model }) => { // of a file, a cell of code, or a cell of text
          if (["markdown", "raw"].includes(model.type)) return null;
          const ours = isOurs(model.sharedModel.getSource().split("\n"));
          const extension = [added.of(ours ? sqlflow : []), follow];
          return codemirror.EditorExtensionRegistry.createImmutableExtension(extension);
        },
      }),
    };
  }

  // Container -----------------------------------------------------------------------------------------------------

  let shared = {};

  // The module that the application itself uses, of the versions that are there.
  async function take(name) {
    const versions = Object.values(shared[name] ?? {});
    const found = versions.find((each) => each.loaded) ?? versions[0];
    if (!found) throw new Error(`${name} is not shared`);
    return (await found.get())();
  }

  async function plugins() {
    try {
      const names = ["@jupyterlab/codemirror", "@codemirror/language", "@codemirror/state"];
      const [codemirror, language, state] = await Promise.all(names.map(take));
      if (!codemirror.IEditorExtensionRegistry) throw new Error("it has no registry of extensions for editors");
      return [plugin(codemirror, language, state)];
    } catch (error) {
      console.warn(`${NAME}: this Jupyter cannot highlight cells of %%sqlflow: ${error.message}`);
      return [];
    }
  }

  (window._JUPYTERLAB ??= {})[NAME] = {
    init: (modules) => { shared = modules; },
    get: async () => {
      const found = { __esModule: true, default: await plugins() };
      return () => found;
    },
  };
})();
