// A QR code (ISO/IEC 18004) of a short text: bytes, error correction level M, versions 1 to 10.
import { h } from "./dom.js";

// Of each version, from 1: error correction codewords a block, and the number of data codewords of each block.
const VERSIONS = [
    [10, [16]], [16, [28]], [26, [44]], [18, [32, 32]], [24, [43, 43]], [16, [27, 27, 27, 27]],
    [18, [31, 31, 31, 31]], [22, [38, 38, 39, 39]], [22, [36, 36, 36, 37, 37]], [26, [43, 43, 43, 43, 44]],
];
// Centres of the alignment patterns.
const CENTRES = [
    [], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50],
];
const MASKS = [
    (x, y) => (x + y) % 2, (x, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3,
    (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2, (x, y) => ((x * y) % 2) + ((x * y) % 3),
    (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];
// The light border that readers need.
const QUIET = 4;

/** A picture of `text`; null for one that does not fit, of more than 213 bytes. */
export function qr(text) {
    const modules = matrix(text);
    if (!modules) return null;
    const size = modules.length + 2 * QUIET;
    const dark = modules.flatMap((row, y) =>
        row.map((bit, x) => (bit ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : "")));
    return h("svg", { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "QR code" },
        h("path", { d: `M0 0h${size}v${size}h-${size}z`, fill: "#fff" }),
        h("path", { d: dark.join(""), fill: "#000" }));
}

/** Rows of modules, true for dark; null for a text that does not fit. */
function matrix(text) {
    const bytes = [...new TextEncoder().encode(text)];
    const version = 1 + VERSIONS.findIndex(([, blocks], index) => bytes.length <= sum(blocks) - header(index + 1));
    if (version === 0) return null;
    const bits = place(version, codewords(bytes, version));
    const masked = MASKS.map((mask, number) => finished(bits, mask, number, version));
    return masked.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** Bytes of the mode and the length, rounded up. */
const header = (version) => (version < 10 ? 2 : 3);

// Codewords

function codewords(bytes, version) {
    const [checks, blocks] = VERSIONS[version - 1];
    const data = encoded(bytes, version, sum(blocks));
    let start = 0;
    const parts = blocks.map((length) => data.slice(start, start += length));
    const codes = parts.map((part) => remainder(part, checks));
    return [...interleaved(parts), ...interleaved(codes)];
}

function encoded(bytes, version, room) {
    const bits = [];
    const add = (value, count) => {
        for (let bit = count - 1; bit >= 0; bit--) bits.push((value >> bit) & 1);
    };
    add(4, 4);
    add(bytes.length, version < 10 ? 8 : 16);
    for (const byte of bytes) add(byte, 8);
    add(0, Math.min(4, 8 * room - bits.length));
    add(0, (8 - (bits.length % 8)) % 8);
    const words = [];
    for (let at = 0; at < bits.length; at += 8) words.push(parseInt(bits.slice(at, at + 8).join(""), 2));
    for (let pad = 0xec; words.length < room; pad ^= 0xec ^ 0x11) words.push(pad);
    return words;
}

function interleaved(parts) {
    const longest = Math.max(...parts.map((part) => part.length));
    return Array.from({ length: longest }, (_, at) => parts.filter((part) => at < part.length).map((part) => part[at]))
        .flat();
}

/** A product in the field of 256 elements of the polynomial 0x11d. */
function product(left, right) {
    let result = 0;
    for (let bit = 7; bit >= 0; bit--) {
        result = (result << 1) ^ ((result >> 7) * 0x11d);
        if ((right >> bit) & 1) result ^= left;
    }
    return result;
}

/** Reed-Solomon: the remainder of the data, by the polynomial with the roots 2^0 to 2^(count - 1). */
function remainder(data, count) {
    let divisor = [1];
    let root = 1;
    for (let degree = 0; degree < count; degree++) {
        const longer = [...divisor, 0];
        divisor.forEach((factor, at) => { longer[at + 1] ^= product(factor, root); });
        divisor = longer;
        root = product(root, 2);
    }
    const rest = Array(count).fill(0);
    for (const byte of data) {
        const lead = byte ^ rest.shift();
        rest.push(0);
        rest.forEach((_, at) => { rest[at] ^= product(divisor[at + 1], lead); });
    }
    return rest;
}

// Modules

/** Patterns, and data without a mask. `fixed` tells which modules no mask changes. */
function place(version, words) {
    const size = 17 + 4 * version;
    const dark = Array.from({ length: size }, () => Array(size).fill(false));
    const fixed = Array.from({ length: size }, () => Array(size).fill(false));
    const set = (x, y, bit) => {
        if (x < 0 || y < 0 || x >= size || y >= size) return;
        dark[y][x] = Boolean(bit);
        fixed[y][x] = true;
    };
    for (let at = 0; at < size; at++) {
        set(6, at, at % 2 === 0);
        set(at, 6, at % 2 === 0);
    }
    for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) square(set, x, y, 4, [0, 1, 3]);
    const centres = CENTRES[version - 1];
    const last = centres.length - 1;
    centres.forEach((x, i) => centres.forEach((y, j) => {
        const isCorner = (i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0);
        if (!isCorner) square(set, x, y, 2, [0, 2]);
    }));
    format(set, size, 0);
    if (version >= 7) versions(set, size, version);
    fill(dark, fixed, words);
    return { dark, fixed };
}

/** Rings around a centre; those at the distances of `rings` are dark. */
function square(set, x, y, reach, rings) {
    for (let dy = -reach; dy <= reach; dy++) {
        for (let dx = -reach; dx <= reach; dx++) {
            set(x + dx, y + dy, rings.includes(Math.max(Math.abs(dx), Math.abs(dy))));
        }
    }
}

/** The level (M is 00) and the mask, twice, with a code of their own. */
function format(set, size, mask) {
    let rest = mask;
    for (let step = 0; step < 10; step++) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
    const bits = ((mask << 10) | rest) ^ 0x5412;
    const bit = (at) => (bits >> at) & 1;
    for (let at = 0; at < 6; at++) set(8, at, bit(at));
    set(8, 7, bit(6));
    set(8, 8, bit(7));
    set(7, 8, bit(8));
    for (let at = 9; at < 15; at++) set(14 - at, 8, bit(at));
    for (let at = 0; at < 8; at++) set(size - 1 - at, 8, bit(at));
    for (let at = 8; at < 15; at++) set(8, size - 15 + at, bit(at));
    set(8, size - 8, true);
}

/** The version, twice, with a code of its own. */
function versions(set, size, version) {
    let rest = version;
    for (let step = 0; step < 12; step++) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
    const bits = (version << 12) | rest;
    for (let at = 0; at < 18; at++) {
        const [near, far] = [Math.floor(at / 3), size - 11 + (at % 3)];
        set(far, near, (bits >> at) & 1);
        set(near, far, (bits >> at) & 1);
    }
}

/** Pairs of columns from the right, up and down in turn, without the column of the timing pattern. */
function fill(dark, fixed, words) {
    const size = dark.length;
    let at = 0;
    for (let right = size - 1, isUp = true; right > 0; right -= 2, isUp = !isUp) {
        if (right === 6) right = 5;
        for (let step = 0; step < size; step++) {
            const y = isUp ? size - 1 - step : step;
            for (const x of [right, right - 1]) {
                if (fixed[y][x] || at >= 8 * words.length) continue;
                dark[y][x] = Boolean((words[at >> 3] >> (7 - (at & 7))) & 1);
                at++;
            }
        }
    }
}

function finished({ dark, fixed }, mask, number, version) {
    const rows = dark.map((row, y) => row.map((bit, x) => (!fixed[y][x] && mask(x, y) === 0 ? !bit : bit)));
    format((x, y, bit) => { rows[y][x] = Boolean(bit); }, 17 + 4 * version, number);
    return rows;
}

/** How hard a code is to read: runs, squares, what looks like a corner, and uneven shares of dark and light. */
function penalty(rows) {
    const size = rows.length;
    const columns = rows.map((_, x) => rows.map((row) => row[x]));
    let points = 0;
    for (const line of [...rows, ...columns]) {
        const text = line.map((bit) => (bit ? "1" : "0")).join("");
        for (const run of text.match(/0{5,}|1{5,}/g) ?? []) points += run.length - 2;
        for (let at = 0; at + 11 <= size; at++) {
            if (["10111010000", "00001011101"].includes(text.slice(at, at + 11))) points += 40;
        }
    }
    for (let y = 1; y < size; y++) {
        for (let x = 1; x < size; x++) {
            const bit = rows[y][x];
            if (bit === rows[y - 1][x] && bit === rows[y][x - 1] && bit === rows[y - 1][x - 1]) points += 3;
        }
    }
    const share = (100 * sum(rows.map((row) => row.filter(Boolean).length))) / (size * size);
    return points + 10 * Math.floor(Math.abs(share - 50) / 5);
}
