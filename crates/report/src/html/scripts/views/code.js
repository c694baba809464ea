// @ts-check
// Source lines and machine code of the selected function, with execution counts of the whole
// recording.
import { data } from "../core/data.js";
import { formatCount, grouped, percent } from "../core/format.js";
import { byId, closest, make } from "../ui/dom.js";
import { source } from "../core/source.js";
import { on, state } from "../ui/state.js";
import { tracked } from "../ui/work.js";

/** @type {FunctionCode | string} */
let current = "";
export const shownCode = () => current;

/** @param {number} n @param {number} most */
const countCell = (n, most) => {
  const cell = make("td", { class: "part" }, n > 0 ? formatCount(n) : "");
  cell.style.setProperty("--part", (100 * n / most).toFixed(1) + "%");
  cell.title = n > 0 ? grouped(n) : "never ran";
  return cell;
};
/** @param {string} title */
const markButton = (title, text = "") =>
  make("button", { type: "button", "aria-pressed": "false", title }, text);
/** @param {string} caption @param {string[]} heads @param {HTMLElement[]} rows */
const table = (caption, heads, rows) => {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const parts = [make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...rows)];
  const place = { class: "scroll tall", tabindex: "0", role: "region", "aria-label": caption };
  return make("div", place, make("table", { class: "code" }, ...parts));
};
/** @param {FunctionCode} code */
const sourceRows = ({ lines, files }) => {
  const most = Math.max(1, ...lines.map((line) => line[2] || 0));
  /** @type {string | null} */
  let last = null;
  return lines.flatMap(([at, number, ran, text], line) => {
    const file = at >= 0 ? files[at] : "", isNew = file !== last;
    last = file;
    const label = ran === null
      ? make("span", {}, String(number))
      : markButton("mark its instructions", number > 0 ? String(number) : "?");
    const cells = [
      make("td", { class: "line" }, label), countCell(ran || 0, most),
      make("td", { class: "text" }, text || ""),
    ];
    const kind = ran === null ? "source none" : ran > 0 ? "source" : "source never";
    const row = make("tr", { class: kind }, ...cells);
    if (ran !== null) row.dataset.line = String(line);
    const head = () => make("tr", {}, make("th", { colspan: "3", scope: "colgroup" }, file || "elsewhere"));
    return isNew ? [head(), row] : [row];
  });
};
/** @param {FunctionCode} code */
const machineRows = ({ code, lines, files }) => {
  const most = Math.max(1, ...code.map((row) => row[1]));
  return code.map(([address, ran, taken, text, line]) => {
    const of = line >= 0 ? lines[line] : null;
    const place = of && of[0] >= 0 ? files[of[0]] + ":" + of[1] : "no line";
    const label = of ? markButton(place + "; mark its line", address) : address;
    const share = ran > 0 ? ", " + percent(taken, ran) : "";
    const branch = taken > 0 ? make("span", { class: "taken" }, "  taken " + formatCount(taken) + share) : "";
    const cells = [
      make("td", { class: "line" }, label), countCell(ran, most), make("td", { class: "text" }, text, branch),
    ];
    const row = make("tr", { class: ran > 0 ? "machine" : "machine never" }, ...cells);
    if (line >= 0) row.dataset.line = String(line);
    return row;
  });
};
/** @param {FunctionCode} code */
const noteOf = (code) => {
  let self = 0;
  for (const { functions } of data.groups) {
    const at = functions.f.indexOf(state.fn);
    if (at >= 0) self += functions.net[at];
  }
  const ran = `${grouped(code.executed)} instructions ran at its addresses in the whole recording.`;
  const apart =
    `Its self count is ${grouped(self)}: there an instruction that returns counts for the caller.`;
  const whole = data.other ? "All of it is of the first profile." : "";
  return [ran, self === code.executed ? "" : apart, whole, code.note].filter(Boolean).join(" ");
};
/** Marks the rows of a line, which a second time undoes; shows the first of its instructions.
 * @param {HTMLElement} place @param {string} line */
const mark = (place, line) => {
  place.dataset.line = place.dataset.line === line ? "" : line;
  let isFirst = true;
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll("tr[data-line]"))) {
    const isMarked = row.dataset.line === place.dataset.line;
    row.classList.toggle("marked", isMarked);
    row.querySelector("button")?.setAttribute("aria-pressed", String(isMarked));
    if (!isMarked || !isFirst || !row.classList.contains("machine")) continue;
    const box = row.closest(".scroll");
    if (box) box.scrollTop = row.offsetTop - box.clientHeight / 3;
    isFirst = false;
  }
};
export const startCode = () => {
  const place = byId("code"), note = byId("code-note");
  let latest = 0;
  /** @param {FunctionCode | string} code */
  const show = (code) => {
    place.dataset.line = "";
    current = code;
    note.textContent = typeof code === "string" ? code : noteOf(code);
    if (typeof code === "string") {
      place.replaceChildren();
      return;
    }
    const lines = sourceRows(code);
    const machine = table("Machine code", ["address", "ran", "instruction"], machineRows(code));
    const tables = lines.length ? [table("Source lines", ["line", "ran", "source"], lines)] : [];
    place.replaceChildren(...tables, machine);
  };
  place.addEventListener("click", (event) => {
    const button = closest(event, "button"), line = button?.closest("tr")?.dataset.line;
    if (line !== undefined) mark(place, line);
  });
  const draw = async () => {
    if (state.tab !== "source") return;
    const mine = ++latest;
    try {
      const code = await source.code(state.fn);
      if (mine === latest) show(code);
    } catch (error) {
      if (mine === latest) show("The code cannot be shown: " + /** @type {Error} */ (error).message);
    }
  };
  const renew = () => tracked(draw);
  on(["fn", "tab"], renew);
  renew();
};
