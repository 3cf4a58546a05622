"use strict";
// Loads the extension as JupyterLab does, with doubles of the modules that it shares, and prints the tokens of cells:
// the extension's path is the argument, standard input a list of cells as JSON.

const fs = require("node:fs");
const vm = require("node:vm");

class Line { // what the tokenizer needs of CodeMirror's StringStream
  constructor(text) { this.text = text; this.pos = 0; }
  sol() { return this.pos === 0; }
  eol() { return this.pos >= this.text.length; }
  next() { return this.text[this.pos++]; }
  skipToEnd() { this.pos = this.text.length; }
  eatSpace() { return this.match(/^\s+/) !== null; }
  skipTo(end) {
    const found = this.text.indexOf(end, this.pos);
    if (found >= 0) this.pos = found;
    return found >= 0;
  }
  match(pattern) {
    const rest = this.text.slice(this.pos);
    const found = typeof pattern === "string" ? rest.startsWith(pattern) && [pattern] : pattern.exec(rest);
    if (!found) return null;
    this.pos += found[0].length;
    return found;
  }
}

function tokens(parser, cell) {
  const state = parser.startState();
  const found = [];
  for (const text of cell.split("\n")) {
    for (const line = new Line(text); !line.eol();) {
      const start = line.pos;
      const kind = parser.token(line, state);
      if (kind) found.push([kind, text.slice(start, line.pos)]);
    }
  }
  return found;
}

async function main() {
  const window = {};
  const said = [];
  vm.runInNewContext(fs.readFileSync(process.argv[2], "utf-8"), { window, console: { warn: (text) => said.push(text) } });
  const container = window._JUPYTERLAB["sqlflow-edl"];
  container.init({});
  const without = (await container.get("./extension"))().default.length;

  let parser = null;
  const module = (exports) => ({ "1.0.0": { get: async () => () => exports } });
  class Compartment {}
  container.init({
    "@jupyterlab/codemirror": module({ IEditorExtensionRegistry: {} }),
    "@codemirror/language": module({ StreamLanguage: { define: (given) => { parser = given; } } }),
    "@codemirror/state": module({ Compartment, EditorState: { transactionExtender: { of() {} } }, Prec: { highest() {} } }),
  });
  await container.get("./extension");
  const cells = JSON.parse(fs.readFileSync(0, "utf-8"));
  console.log(JSON.stringify({ without, said, cells: cells.map((cell) => tokens(parser, cell)) }));
}

main();
