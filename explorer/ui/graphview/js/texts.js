// Texts that fit: measured once, cut with an ellipsis.

const cutTexts = new Map();
const textWidths = new Map();
const MAX_TEXTS = 20000;
const MAX_SIGNS = 300;

/** Set the font; reading ctx.font back is slow, so what was set is remembered here. */
export function useFont(ctx, font) {
  if (ctx.egFont === font) return;
  ctx.font = font;
  ctx.egFont = font;
}

/** Draw a text, cut so that it fits into a width. */
export function fittedText(ctx, text, x, y, width) {
  if (text && width > 6) ctx.fillText(cutToFit(ctx, text, width), x, y);
}

/** A text, or its beginning and an ellipsis, no wider than ``width`` in the current font. */
export function cutToFit(ctx, text, width) {
  const key = `${ctx.egFont}|${Math.round(width)}|${text}`;
  let shown = cutTexts.get(key);
  if (shown === undefined) {
    shown = shorten(ctx, text.length > MAX_SIGNS ? text.slice(0, MAX_SIGNS) : text, width);
    if (cutTexts.size > MAX_TEXTS) cutTexts.clear();
    cutTexts.set(key, shown);
  }
  return shown;
}

function shorten(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  const signs = [...text];
  let [low, high] = [0, signs.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const fits = ctx.measureText(`${signs.slice(0, middle).join("")}…`).width <= width;
    [low, high] = fits ? [middle, high] : [low, middle - 1];
  }
  return low ? `${signs.slice(0, low).join("").trimEnd()}…` : "";
}

export function textWidth(ctx, text) {
  const key = `${ctx.egFont}|${text}`;
  let width = textWidths.get(key);
  if (width === undefined) {
    width = ctx.measureText(text).width;
    if (textWidths.size > MAX_TEXTS) textWidths.clear();
    textWidths.set(key, width);
  }
  return width;
}

/** The last part of a path-like name. */
export function lastPart(name) {
  const parts = name.split("/").filter(Boolean);
  return parts.length ? parts[parts.length - 1] : name;
}
