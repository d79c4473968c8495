// Makes elements from values, and changes the page into them. Text never becomes markup.

const SVG = new Set(["svg", "path", "line"]);

/**
 * An element. `on…` are handlers, and `key` tells it from its siblings. An element with `own` draws its content itself,
 * and a redraw leaves that alone. null and false are left out.
 */
export function h(tag, props, ...kids) {
    const node = SVG.has(tag)
        ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    node.handlers = {};
    for (const [name, value] of Object.entries(props ?? {})) {
        if (value == null) continue;
        if (name === "key") node.key = String(value);
        else if (name === "own") node.own = value;
        else if (name === "value" || name === "checked") (node.set ||= {})[name] = value;
        else if (value === false) continue;
        else if (name.startsWith("on")) node[name] = node.handlers[name] = value;
        else node.setAttribute(name, value === true ? "" : String(value));
    }
    append(node, kids);
    // Last: a select has a value only once it has its options.
    Object.assign(node, node.set);
    return node;
}

function append(node, kids) {
    for (const kid of kids.flat(Infinity)) {
        if (kid == null || kid === false || kid === "") continue;
        node.append(kid instanceof Node ? kid : String(kid));
    }
}

/** Several siblings as one. */
export function fragment(...kids) {
    const node = document.createDocumentFragment();
    append(node, kids);
    return node;
}

/** Draws `kids` into `place`. Elements that stay keep their focus, selection and scroll position. */
export const paint = (place, ...kids) => morph(place, fragment(...kids));

/** Changes `old`'s children into those of `fresh`. */
function morph(old, fresh) {
    const keyed = new Map();
    const wanted = new Set([...fresh.childNodes].map((kid) => kid.key));
    for (const kid of [...old.childNodes]) {
        if (kid.key === undefined) continue;
        // First of all: an element that moves loses its focus, and a gap moves none.
        if (wanted.has(kid.key)) keyed.set(kid.key, kid);
        else kid.remove();
    }
    let place = old.firstChild;
    for (const kid of [...fresh.childNodes]) {
        const match = kid.key === undefined ? place : keyed.get(kid.key);
        if (!match || !alike(match, kid)) {
            old.insertBefore(kid, place);
            continue;
        }
        if (match === place) place = place.nextSibling;
        else old.insertBefore(match, place);
        become(match, kid);
        keyed.delete(kid.key);
    }
    while (place) {
        const next = place.nextSibling;
        place.remove();
        place = next;
    }
}

const alike = (a, b) => a.nodeName === b.nodeName && a.key === b.key;

function become(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
        if (old.data !== fresh.data) old.data = fresh.data;
        return;
    }
    if (old.own && fresh.own) return;
    for (const { name } of [...old.attributes]) {
        // A person opened it.
        const isOpen = name === "open" && old.nodeName === "DETAILS";
        if (!fresh.hasAttribute(name) && !isOpen) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
        if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const name of Object.keys({ ...old.handlers, ...fresh.handlers })) {
        old[name] = fresh.handlers?.[name] ?? null;
    }
    old.handlers = fresh.handlers;
    morph(old, fresh);
    for (const [name, value] of Object.entries(fresh.set ?? {})) {
        // A person is typing in it.
        if (old === document.activeElement && name === "value") continue;
        if (old[name] !== value) old[name] = value;
    }
    old.set = fresh.set;
}

export const byId = (id) => document.getElementById(id);

/** A function that calls `work` once, `wait` ms after its last call. */
export function debounced(wait, work) {
    let timer = 0;
    return (...values) => {
        clearTimeout(timer);
        timer = setTimeout(work, wait, ...values);
    };
}

/** A setting in the browser's storage; null without one. */
export function kept(name) {
    try { return localStorage.getItem(name); } catch { return null; }
}

export function keep(name, value) {
    try { localStorage.setItem(name, value); } catch { /* Then the setting lasts until the page closes. */ }
}

/** Announces a text to screen readers. */
export function announce(text) {
    const said = byId("said");
    if (said.textContent !== text) said.textContent = text;
}

let toastEnds = 0;

/** Shows and announces a text for some seconds. */
export function toast(text, kind) {
    const place = byId("toast");
    place.textContent = text;
    place.className = `toast ${kind ?? ""}`;
    place.hidden = false;
    announce(text);
    clearTimeout(toastEnds);
    toastEnds = setTimeout(() => { place.hidden = true; }, kind === "bad" ? 12000 : 6000);
}
