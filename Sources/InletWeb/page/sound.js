// The kiosk's sounds.

/** Each tone: its pitch in Hz, and its length in seconds. */
const TUNES = { safe: [[660, 0.25], [880, 0.45]], alarm: [[440, 0.3], [330, 0.3], [440, 0.3], [330, 0.5]] };
let context = null;

export const isAudible = () => context?.state === "running";

/** Browsers allow sound only after a person touched the page, unless they are set up as a kiosk. */
export async function switchOn() {
    context ??= new AudioContext();
    await context.resume();
}

export function play(tune) {
    if (!isAudible()) return;
    let at = context.currentTime + 0.05;
    for (const [pitch, length] of TUNES[tune]) {
        const [tone, volume] = [context.createOscillator(), context.createGain()];
        tone.frequency.value = pitch;
        tone.type = "triangle";
        // Without a soft end each tone would click.
        volume.gain.setValueAtTime(0.6, at);
        volume.gain.linearRampToValueAtTime(0.001, at + length);
        tone.connect(volume).connect(context.destination);
        tone.start(at);
        tone.stop(at + length);
        at += length;
    }
}
