// Colours of the page we stand in, and what is derived from them.

const THEME_NAMES = ["bg", "panel", "text", "muted", "border", "brand", "error"];

/** Read the colours of the front end's theme through the variables of graphview.css. */
export function readTheme(root) {
  const probe = document.createElement("span");
  probe.style.display = "none";
  root.appendChild(probe);
  const colours = {};
  for (const name of THEME_NAMES) {
    probe.style.color = `var(--eg-${name})`;
    colours[name] = parseColour(getComputedStyle(probe).color);
  }
  const family = getComputedStyle(root).fontFamily || "sans-serif";
  probe.remove();
  return makeTheme(colours, family);
}

/** A theme from parsed base colours. */
export function makeTheme(base, family) {
  const dark = luminance(base.bg) < 0.35;
  const between = (share) => cssColour(mixColours(base.bg, base.text, share));
  return {
    base,
    dark,
    family,
    bg: cssColour(base.bg),
    text: cssColour(base.text),
    muted: cssColour(mixColours(base.bg, base.text, dark ? 0.66 : 0.62)),
    faint: between(dark ? 0.42 : 0.4),
    border: between(dark ? 0.24 : 0.17),
    line: between(dark ? 0.46 : 0.4),
    frame: between(dark ? 0.055 : 0.026),
    frameEdge: between(dark ? 0.2 : 0.14),
    title: between(dark ? 0.1 : 0.05),
    shadow: dark ? "rgba(0,0,0,0.45)" : "rgba(15,25,40,0.09)",
    brand: cssColour(base.brand),
    halo: cssColour([...base.brand.slice(0, 3), dark ? 0.34 : 0.24]),
    font: (size, weight = 400) => `${weight} ${size}px ${family}`,
    key: [base.bg, base.text, base.brand].join("|"),
  };
}

/** How a box in the given colour looks: fill, border, accent and text. */
export function boxColours(theme, colour, strong = false) {
  const accent = parseColour(colour);
  const { bg, text } = theme.base;
  if (strong) {
    const ink = luminance(accent) > 0.36 ? [20, 24, 28, 1] : [255, 255, 255, 1];
    return {
      fill: colour,
      border: cssColour(mixColours(accent, text, 0.3)),
      accent: colour,
      text: cssColour(ink),
      muted: cssColour(mixColours(accent, ink, 0.78)),
    };
  }
  const card = theme.dark ? mixColours(bg, [255, 255, 255, 1], 0.06) : bg;
  const shown = theme.dark ? mixColours(accent, [255, 255, 255, 1], 0.18) : accent;
  return {
    fill: cssColour(mixColours(card, shown, theme.dark ? 0.16 : 0.085)),
    border: cssColour(mixColours(card, shown, theme.dark ? 0.5 : 0.42)),
    accent: cssColour(shown),
    text: theme.text,
    muted: theme.muted,
  };
}

/** Colour at a share (0 to 1) of a scale given by its stops. */
export function scaleColour(stops, share) {
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return cssColour(mixColours(parseColour(stops[low]), parseColour(stops[low + 1]), place - low));
}

/** "#rrggbb" or "rgb(a)(...)" as [red, green, blue, alpha]. */
export function parseColour(text) {
  const hex = /^#([0-9a-f]{6})$/i.exec(text);
  if (hex) return [0, 2, 4].map((i) => parseInt(hex[1].slice(i, i + 2), 16)).concat(1);
  const parts = (text.match(/[\d.]+/g) || []).map(Number);
  if (parts.length < 3) return [128, 128, 128, 1];
  const unit = /^color\(/.test(text) ? 255 : 1;
  return [parts[0] * unit, parts[1] * unit, parts[2] * unit, parts[3] ?? 1];
}

export function mixColours(a, b, share) {
  return [0, 1, 2].map((i) => a[i] + (b[i] - a[i]) * share).concat(a[3] + (b[3] - a[3]) * share);
}

export function cssColour([r, g, b, a]) {
  const [red, green, blue] = [r, g, b].map(Math.round);
  return a < 1 ? `rgba(${red},${green},${blue},${a})` : `rgb(${red},${green},${blue})`;
}

function luminance([r, g, b]) {
  const linear = (v) => (v <= 10 ? v / 3294 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}
