"use strict";
const facts = JSON.parse(document.getElementById("facts").textContent);
const tip = document.getElementById("tip");
const SVG = "http://www.w3.org/2000/svg";

const number = (n) => n.toLocaleString("en-US");
const short = (n) => n < 1000 ? String(Math.round(n)) : n < 999500 ? +(n / 1000).toFixed(n < 9950 ? 1 : 0) + "k" : +(n / 1e6).toFixed(2) + "M";
const percent = (n) => facts.window ? Math.round(100 * n / facts.window) + " %" : "";
const dollars = (n) => "$" + n.toFixed(n < 1 ? 3 : 2);

function draw(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function tell(lines, x, y) {
  tip.replaceChildren(...lines.filter(Boolean).map((line, at) => {
    const made = document.createElement(at ? "span" : "b");
    made.textContent = line;
    return made;
  }));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = x + 14 + box.width < innerWidth - 8;
  const left = right ? x + 14 : x - box.width - 14;
  const below = y + 18 + box.height < innerHeight;
  tip.style.left = Math.min(Math.max(8, left), Math.max(8, innerWidth - box.width - 8)) + "px";
  tip.style.top = (below ? y + 18 : Math.max(8, y - box.height - 12)) + "px";
}

function hush() { tip.hidden = true; again = null; }

/* Shows the tooltip of the focused mark again after the page has scrolled; null if there is no such tooltip. */
let again = null;

/* Makes a mark show `lines` as a tooltip to mouse, finger and keyboard, and as a label to screen readers. */
function telling(mark, lines, focusable = true) {
  mark.setAttribute("role", "img");
  mark.setAttribute("aria-label", lines.filter(Boolean).join(", "));
  if (focusable) mark.setAttribute("tabindex", "0");
  mark.addEventListener("pointermove", (event) => { event.stopPropagation(); again = null; tell(lines, event.clientX, event.clientY); });
  mark.addEventListener("pointerleave", hush);
  mark.addEventListener("focus", () => {
    if (!mark.matches(":focus-visible")) return;
    again = () => {
      const box = mark.getBoundingClientRect();
      tell(lines, box.left + Math.min(box.width / 2, 60), box.top + Math.min(box.height / 2, 24));
    };
    again();
  });
  mark.addEventListener("blur", hush);
  return mark;
}

function canvas(place, height, label) {
  const width = Math.max(220, place.clientWidth);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": label });
  place.replaceChildren(svg);
  return { svg, width };
}

function drawBar(place) {
  const height = 46, { svg, width } = canvas(place, height, "what fills the context window");
  const whole = Math.max(1, facts.window || 0, facts.used);
  draw("rect", { class: "free", x: 0, y: 6, width, height: 26, rx: 4 }, svg);
  let x = 0;
  for (const part of facts.parts) {
    const size = Math.max(1, width * part.tokens / whole);
    const mark = draw("rect", { class: part.kind, x, y: 6, width: Math.max(.5, size - 1), height: 26, rx: 2 }, svg);
    telling(mark, [part.name, `${number(part.tokens)} tokens, ${part.share} of the ${facts.window ? "window" : "context"}`]);
    x += size;
  }
  if (facts.window > facts.used) {
    const free = draw("rect", { class: "free", x, y: 6, width: Math.max(0, width - x), height: 26, rx: 4 }, svg);
    telling(free, ["free", `${number(facts.window - facts.used)} tokens, ${percent(facts.window - facts.used)} of the window`]);
  }
  if (facts.threshold && facts.threshold <= whole) {
    const at = width * facts.threshold / whole;
    draw("line", { class: "mark", x1: at, x2: at, y1: 0, y2: 36 }, svg);
    const right = at > width - 110;
    draw("text", { x: at + (right ? -4 : 0), y: 46, "text-anchor": right ? "end" : "start" }, svg,
      `compacts at ${Math.round(100 * facts.threshold / whole)} %`);
  }
}

function ticks(top) {
  const rough = top / 4, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let at = 0; at <= top; at += step) found.push(at);
  return found;
}

/* Draws a curve over the turns. The pointer and the arrow keys move its cursor. */
function drawCurve(place, points, { height, value, axis, lines, limits, cuts, label }) {
  if (points.length < 2) { place.closest("section").hidden = true; return; }
  const { svg, width } = canvas(place, height, label);
  const left = 46, right = width - 8, top = cuts ? 18 : 8, bottom = height - 22;
  const most = Math.max(...points.map(value), 1e-9);
  const shown = (limits || []).filter((limit) => limit.at && limit.at <= 1.6 * most);
  const ceiling = Math.max(most, ...shown.map((limit) => limit.at)) * 1.04;
  const px = (at) => left + (right - left) * at / (points.length - 1);
  const py = (n) => bottom - (bottom - top) * n / ceiling;
  for (const at of ticks(ceiling)) {
    draw("line", { class: "grid", x1: left, x2: right, y1: py(at), y2: py(at) }, svg);
    draw("text", { x: left - 6, y: py(at) + 4, "text-anchor": "end" }, svg, axis(at));
  }
  const count = Math.max(1, Math.min(10, Math.floor((right - left) / 90)));
  let said = null;
  for (let n = 0; n <= count; n++) {
    const at = Math.round((points.length - 1) * n / count), turn = points[at].turn;
    if (turn === said) continue;
    said = turn;
    draw("text", { x: px(at), y: height - 6, "text-anchor": at === 0 ? "start" : at === points.length - 1 ? "end" : "middle" }, svg, `turn ${turn}`);
  }
  for (const limit of shown) {
    draw("line", { class: "limit", x1: left, x2: right, y1: py(limit.at), y2: py(limit.at) }, svg);
    draw("text", { x: right, y: py(limit.at) - 4, "text-anchor": "end" }, svg, `${limit.name} ${short(limit.at)}`);
  }
  let run = [];
  const finish = () => {
    if (!run.length) return;
    const path = run.map((at) => `${px(at).toFixed(1)},${py(value(points[at])).toFixed(1)}`);
    draw("path", { class: "area", d: `M${px(run[0])},${bottom}L${path.join("L")}L${px(run[run.length - 1])},${bottom}Z` }, svg);
    draw("polyline", { class: "curve", points: path.join(" ") }, svg);
    run = [];
  };
  points.forEach((point, at) => {
    if (cuts && at && point.since !== points[at - 1].since) finish();
    run.push(at);
  });
  finish();
  const cursor = draw("g", { visibility: "hidden" }, svg);
  const rule = draw("line", { class: "cursor", y1: top, y2: bottom }, cursor);
  const dot = draw("circle", { class: "dot", r: 4.5 }, cursor);
  const field = draw("rect", { x: left, y: top, width: right - left, height: bottom - top, fill: "transparent",
    tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": points.length - 1,
    "aria-valuenow": points.length - 1 }, svg);
  let now = points.length - 1;
  const go = (at, pointer) => {
    now = Math.max(0, Math.min(points.length - 1, at));
    const x = px(now), y = py(value(points[now])), told = lines(points[now], points[now - 1]);
    rule.setAttribute("x1", x); rule.setAttribute("x2", x);
    dot.setAttribute("cx", x); dot.setAttribute("cy", y);
    cursor.setAttribute("visibility", "visible");
    field.setAttribute("aria-valuenow", now);
    field.setAttribute("aria-valuetext", told.filter(Boolean).join(", "));
    const box = svg.getBoundingClientRect(), scale = box.width / width;
    again = pointer ? null : () => go(now);
    tell(told, box.left + x * scale, pointer ? pointer.clientY : box.top + y * scale);
  };
  const leave = () => { cursor.setAttribute("visibility", "hidden"); hush(); };
  field.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * width / box.width;
    go(Math.round((x - left) / (right - left) * (points.length - 1)), event);
  });
  field.addEventListener("pointerleave", leave);
  field.addEventListener("focus", () => { if (field.matches(":focus-visible")) go(now); });
  field.addEventListener("blur", leave);
  field.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(points.length / 10));
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - page, PageDown: now + page,
      Home: 0, End: points.length - 1, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to === null) leave(); else go(to);
  });
  if (cuts) drawCuts(svg, points, px, top, bottom);
}

function drawCuts(svg, points, px, top, bottom) {
  for (let at = 1; at < points.length; at++) {
    const before = points[at - 1], after = points[at];
    if (after.since === before.since) continue;
    const x = (px(at - 1) + px(at)) / 2, mark = draw("g", { class: "cut" }, svg);
    draw("line", { x1: x, x2: x, y1: top - 4, y2: bottom }, mark);
    draw("path", { d: `M${x - 5},${top - 12}h10l-5,8z` }, mark);
    draw("rect", { x: x - 7, y: top - 16, width: 14, height: 16 }, mark);
    const turn = facts.compactions[after.since - 1] ?? after.turn;
    telling(mark, [`compaction ${after.since}, in turn ${turn}`,
      `${number(before.tokens)} → ${number(after.tokens)} tokens`]);
  }
}

/* Lays out a squarified treemap (Bruls, Huizing, van Wijk 2000): a row is filled while its tiles become squarer. */
function tiled(items, x, y, width, height) {
  const total = items.reduce((sum, item) => sum + item.tokens, 0), found = [];
  let scale = width * height / Math.max(1, total), at = 0;
  while (at < items.length && width > 0 && height > 0) {
    const side = Math.min(width, height);
    const worst = (row, sum) => Math.max(side * side * row[0] / (sum * sum), sum * sum / (side * side * row[row.length - 1]));
    let row = [], sum = 0, next = at;
    while (next < items.length) {
      const size = Math.max(1e-6, items[next].tokens * scale);
      if (row.length && worst([...row, size], sum + size) > worst(row, sum)) break;
      row.push(size); sum += size; next++;
    }
    const thick = sum / side;
    let along = 0;
    row.forEach((size, n) => {
      const long = size / thick;
      found.push(width >= height
        ? { item: items[at + n], x, y: y + along, width: thick, height: long }
        : { item: items[at + n], x: x + along, y, width: long, height: thick });
      along += long;
    });
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    at = next;
  }
  return found;
}

/* Shortens a name to `room` characters. Of a tool with a path, the end of the path is kept. */
function clipped(name, room) {
  if (name.length <= room) return name;
  const file = name.slice(name.lastIndexOf("/") + 1);
  if (!/^\S+ \S*\/\S*$/.test(name)) return name.slice(0, room - 1) + "…";
  return file.length < room ? "…" + name.slice(1 - room) : file.slice(0, room - 1) + "…";
}

function drawTiles(place) {
  if (!facts.entries.length) { place.closest("section").hidden = true; return; }
  const height = 380, { svg, width } = canvas(place, height, "the entries of the context by size; arrow keys go through them");
  const rest = { tokens: facts.rest_tokens, kind: "rest", what: `${number(facts.rest_count)} smaller entries`, colour: "rest" };
  const items = facts.rest_tokens ? [...facts.entries, rest].sort((a, b) => b.tokens - a.tokens) : facts.entries;
  const marks = tiled(items, 0, 0, width, height).map((tile, at) => {
    const { item } = tile, wide = Math.max(.5, tile.width - 1.5), high = Math.max(.5, tile.height - 1.5);
    const mark = draw("g", { class: item.failed ? "tile failed" : "tile" }, svg);
    draw("rect", { class: item.colour, x: tile.x, y: tile.y, width: wide, height: high, rx: 2 }, mark);
    const room = Math.floor((wide - 10) / 7.2), name = item.what || item.kind;
    if (room > 3 && high > 18) {
      const style = item.colour === "rest" ? "tile-name rest-name" : "tile-name";
      draw("text", { class: style, x: tile.x + 6, y: tile.y + 15 }, mark, clipped(name, room));
      if (high > 36) draw("text", { class: style, x: tile.x + 6, y: tile.y + 30 }, mark, short(item.tokens));
    }
    const where = item.turn ? `turn ${number(item.turn)}, message ${number(item.message)}` : "";
    telling(mark, [item.what || item.kind, `${item.kind} of ${number(item.tokens)} tokens`, where, item.note], false);
    mark.setAttribute("tabindex", at ? -1 : 0);
    return mark;
  });
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  svg.addEventListener("keydown", (event) => {
    const at = marks.indexOf(document.activeElement), step = steps[event.key];
    if (event.key === "Escape") hush();
    if (at < 0 || step === undefined) return;
    event.preventDefault();
    const to = marks[Math.max(0, Math.min(marks.length - 1, at + step))];
    marks[at].setAttribute("tabindex", -1);
    to.setAttribute("tabindex", 0);
    to.focus();
  });
}

const grown = (point, before) => {
  const more = before && before.since === point.since ? point.tokens - before.tokens : 0;
  return [`turn ${number(point.turn)}`, `${number(point.tokens)} tokens${facts.window ? `, ${percent(point.tokens)} of the window` : ""}`,
    more ? `${more > 0 ? "+" : "−"}${number(Math.abs(more))} since the answer before` : ""];
};

function drawAll() {
  hush();
  drawBar(document.getElementById("bar"));
  drawCurve(document.getElementById("growth"), facts.points, {
    height: 260, value: (point) => point.tokens, axis: short, lines: grown, cuts: true,
    limits: [{ name: "compacts at", at: facts.threshold }, { name: "window", at: facts.window }],
    label: "tokens in the context after each answer; arrow keys go through them",
  });
  drawTiles(document.getElementById("entries"));
  drawCurve(document.getElementById("spent"), facts.spent, {
    height: 150, value: (point) => point.dollars, axis: (n) => "$" + (+n.toFixed(3)),
    lines: (point, before) => [`turn ${number(point.turn)}`, `${dollars(point.dollars)} so far`,
      before ? `${dollars(point.dollars - before.dollars)} for this request` : ""],
    label: "cost so far after each request; arrow keys go through them",
  });
}

drawAll();
let drawn = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawn) { drawn = innerWidth; drawAll(); } });
addEventListener("scroll", () => { if (again) again(); else hush(); }, { passive: true });
