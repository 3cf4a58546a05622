"use strict";
// Without this script the pages show the same facts; with it they follow running jobs and move the threshold.

// Running jobs: parts of a page that the server renders again ------------------------------------------------------

function replaceChanged(part, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const wanted = new Set();
  let before = null;
  for (const element of [...fresh.children]) {
    wanted.add(element.id);
    const old = part.querySelector(":scope > #" + CSS.escape(element.id));
    if (!old) {
      if (before) before.after(element); else part.prepend(element);
      before = element;
    } else if (old.outerHTML !== element.outerHTML) {
      const log = old.querySelector(".log");
      const place = log && log.scrollTop;
      const atEnd = log && log.scrollHeight - log.scrollTop - log.clientHeight < 8;
      const marked = [...old.querySelectorAll("input:checked")].map((box) => box.value);
      for (const box of element.querySelectorAll("input[type=checkbox]")) box.checked = marked.includes(box.value);
      old.replaceWith(element);
      const shown = element.querySelector(".log");
      if (log && shown) shown.scrollTop = atEnd ? shown.scrollHeight : place;
      before = element;
    } else {
      before = old;
    }
  }
  for (const old of [...part.children]) if (!wanted.has(old.id)) old.remove();
}

function follow(part) {
  const every = Number(part.dataset.every);
  const again = (wait) => setTimeout(ask, wait);
  async function ask() {
    const selected = getSelection(); // text that somebody copies must stay
    if (document.hidden || (selected.type === "Range" && part.contains(selected.anchorNode))) return again(every);
    try {
      const answer = await fetch(part.dataset.live, { redirect: "error" });
      if (answer.ok) replaceChanged(part, await answer.text());
      if (part.querySelector(":scope > [data-ended]")) return location.reload();
      again(every);
    } catch {
      again(5 * every);
    }
  }
  again(every);
}

for (const part of document.querySelectorAll("[data-live]:not([data-ended])")) follow(part);
for (const log of document.querySelectorAll(".log")) log.scrollTop = log.scrollHeight;
for (const form of document.querySelectorAll("form[data-confirm]"))
  form.addEventListener("submit", (event) => { if (!confirm(form.dataset.confirm)) event.preventDefault(); });

// Prediction of a row: sliders move the numbers beside them, and the prediction follows ------------------------------

function predictions(form) {
  const shown = form.querySelector(".predicted");
  let later = 0, isAsked = false, hasChanged = false;

  async function ask() {
    if (isAsked) { hasChanged = true; return; } // one at a time: the server would make all of them
    isAsked = true;
    hasChanged = false;
    shown.classList.add("waits");
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)),
        headers: { "x-part": "yes" }, redirect: "error" });
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      shown.replaceChildren(...(found.querySelector("main") ?? found.body).children);
    } catch {
      shown.textContent = "The server does not answer.";
    }
    shown.classList.remove("waits");
    isAsked = false;
    if (hasChanged) ask();
  }

  function soon() {
    clearTimeout(later);
    if (shown.childElementCount) later = setTimeout(ask, 200); // the first prediction, which loads the model, is asked for
  }

  for (const slider of form.querySelectorAll("input[data-of]")) {
    const field = form.elements[slider.dataset.of];
    slider.disabled = false;
    slider.addEventListener("input", () => { field.value = slider.value; soon(); });
    field.addEventListener("input", () => { if (field.value !== "") slider.value = field.value; });
  }
  form.addEventListener("input", soon);
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(later); ask(); });
}

for (const form of document.querySelectorAll("form.prediction")) predictions(form);

// Threshold of a class ---------------------------------------------------------------------------------------------

const leastShare = 0.01; // of rows that have a lift
const percent = (part, whole) => whole ? (100 * part / whole).toFixed(1) + " %" : "–";
const count = (value) => value.toLocaleString("en", { maximumFractionDigits: 1 });

function move(section, kind, x, y) {
  const marker = section.querySelector(`[data-marker=${kind}]`);
  if (!marker) return;
  if (y === null) return marker.setAttribute("visibility", "hidden");
  const { left, right, top, bottom, high } = marker.closest("svg").dataset;
  marker.setAttribute("cx", +left + x * (right - left));
  marker.setAttribute("cy", +bottom + y / high * (top - bottom));
  marker.setAttribute("r", 5);
  marker.setAttribute("visibility", "visible");
}

function draw(section, kind, points) {
  const line = section.querySelector(`[data-line=${kind}]`);
  if (!line) return;
  const { left, right, top, bottom, high } = line.closest("svg").dataset;
  const place = ([x, y]) => `${+left + x * (right - left)},${+bottom + y / high * (top - bottom)}`;
  line.setAttribute("points", points.map(place).join(" "));
}

function confuse(figure, cells) {
  const [tn, fp, fn, tp] = cells;
  const rows = [tn + fp, tn + fp, fn + tp, fn + tp];
  ["0-0", "0-1", "1-0", "1-1"].forEach((key, place) => {
    const share = rows[place] ? cells[place] / rows[place] : 0;
    const box = figure.querySelector(`[data-cell="${key}"]`);
    box.setAttribute("fill-opacity", (0.08 + 0.6 * share).toFixed(3));
    box.querySelector("title").textContent = `${count(cells[place])}, ${percent(cells[place], rows[place])}`;
    figure.querySelector(`[data-count="${key}"]`).textContent = count(cells[place]);
  });
  const margins = { "recall=\"0\"": percent(tn, tn + fp), "recall=\"1\"": percent(tp, tp + fn),
    "precision=\"0\"": percent(tn, tn + fn), "precision=\"1\"": percent(tp, tp + fp) };
  for (const [key, words] of Object.entries(margins)) figure.querySelector(`[data-${key}]`).textContent = words;
}

function scores(section) {
  const curves = JSON.parse(section.querySelector(".score-data").textContent);
  const slider = section.querySelector(".threshold");
  const choice = section.querySelector(".class-choice");
  const binary = section.querySelector("figure[data-binary=yes]");
  const curve = () => curves[choice ? choice.value : 0];

  let threshold = 0.5;

  function show() {
    const { inside, outside, thresholds, hits, alarms } = curve();
    let place = thresholds.findIndex((each) => each < threshold) - 1; // the last one that is not below
    if (place === -2) place = thresholds.length - 1;
    const tp = place < 0 ? 0 : hits[place], fp = place < 0 ? 0 : alarms[place], fn = inside - tp, tn = outside - fp;
    const words = threshold.toFixed(3);
    section.querySelector(".threshold-value").textContent = words;
    slider.value = threshold;
    slider.setAttribute("aria-valuetext", "probability " + words);
    const figures = { precision: percent(tp, tp + fp), recall: percent(tp, inside),
      f1: percent(2 * tp, 2 * tp + fp + fn), accuracy: percent(tp + tn, inside + outside),
      "false positive rate": percent(fp, outside), "predicted rows": count(tp + fp) };
    section.querySelector(".score-figures").replaceChildren(...Object.entries(figures).map(([name, value]) => {
      const [pair, term, text] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
      term.textContent = name;
      text.textContent = value;
      pair.append(term, text);
      return pair;
    }));
    move(section, "roc", fp / outside, tp / inside);
    move(section, "precision", tp / inside, tp + fp ? tp / (tp + fp) : 1);
    const taken = (tp + fp) / (inside + outside);
    move(section, "gain", taken, tp / inside);
    move(section, "lift", taken, taken < leastShare ? null : tp / inside / taken);
    if (binary) confuse(binary, [tn, fp, fn, tp]);
  }

  function set(wanted) {
    threshold = Number(wanted);
    show();
  }

  function choose() {
    const { name, inside, outside, hits, alarms } = curve();
    section.querySelector(".class-name").textContent = name;
    draw(section, "roc", [[0, 0], ...hits.map((hit, place) => [alarms[place] / outside, hit / inside])]);
    const taken = (place) => (hits[place] + alarms[place]) / (inside + outside);
    draw(section, "gain", [[0, 0], ...hits.map((hit, place) => [taken(place), hit / inside])]);
    draw(section, "lift", hits.map((hit, place) => [taken(place), hit / inside / taken(place)])
      .filter(([share]) => share >= leastShare));
    draw(section, "precision", hits.map((hit, place) => [hit / inside, hit / (hit + alarms[place])]));
    set(0.5);
  }

  slider.addEventListener("input", () => set(slider.value));
  if (choice) choice.addEventListener("change", choose);
  for (const button of section.querySelectorAll(".preset")) {
    button.disabled = false;
    button.addEventListener("click", () => set(button.dataset.threshold));
  }
  slider.disabled = false;
  choose();
}

for (const section of document.querySelectorAll(".scores")) if (section.querySelector(".score-data")) scores(section);
