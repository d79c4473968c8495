extension WebFiles {
    /// Colours, type and what stands on every page. Both themes are in `light-dark()`; the contrast of each text to what
    /// is behind it is at least 4.5 to 1, which the browser test computes.
    static let style = #"""
        :root {
          color-scheme: light dark;
          --page: light-dark(#f5f6f8, #14171b);
          --card: light-dark(#ffffff, #1c2025);
          --text: light-dark(#1b2129, #e4e8ed);
          --muted: light-dark(#545e6b, #a3aebb);
          --line: light-dark(#dbe0e6, #323942);
          --accent: light-dark(#0b5cc0, #78b0ff);
          --on-accent: light-dark(#ffffff, #0d1520);
          --tint: light-dark(#e8f0fb, #1f2b3c);
          --good: light-dark(#17692f, #6fd08c);
          --good-back: light-dark(#e4f4e8, #18301f);
          --bad: light-dark(#a81d1d, #ff9a92);
          --bad-back: light-dark(#fdeaea, #3d1f1f);
          --wait: light-dark(#7d4e00, #f0bd62);
          --wait-back: light-dark(#fcf1dc, #352a14);
          --neutral-back: light-dark(#e9ecf0, #2a3038);
          --mono: ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace;
        }
        :root[data-theme="light"] { color-scheme: light; }
        :root[data-theme="dark"] { color-scheme: dark; }
        * { box-sizing: border-box; }
        body {
          margin: 0; background: var(--page); color: var(--text);
          font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
          display: grid; grid-template: "top top" auto "nav banners" auto "nav main" 1fr / 11.5rem minmax(0, 1fr);
          min-height: 100vh;
        }
        h1, h2, h3 { line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
        h1 { font-size: 1.35rem; margin-bottom: .75rem; }
        h2 { font-size: 1rem; margin-bottom: .5rem; }
        h3 { font-size: .93rem; margin: .75rem 0 .25rem; }
        p { margin: 0 0 .5rem; }
        ul, ol { margin: 0 0 .5rem; padding-left: 1.25rem; }
        a { color: var(--accent); text-underline-offset: .15em; }
        code, pre, kbd { font-family: var(--mono); font-size: .92em; overflow-wrap: anywhere; }
        pre {
          background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .75rem; margin: 0;
          overflow: auto; max-height: 60vh; white-space: pre-wrap;
        }
        kbd { border: 1px solid var(--line); border-radius: 4px; padding: .05rem .35rem; background: var(--page); }
        .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
        [hidden] { display: none !important; }
        .muted, .small { color: var(--muted); }
        .small { font-size: .86rem; }
        .name, .why { overflow-wrap: anywhere; unicode-bidi: isolate; }
        .fault { color: var(--bad); }
        .skip { position: absolute; left: .5rem; top: -4rem; background: var(--card); padding: .5rem .75rem; z-index: 9; }
        .skip:focus { top: .5rem; }
        :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
        h1:focus, main:focus { outline: none; }

        .top {
          grid-area: top; display: flex; align-items: center; gap: .5rem 1rem; flex-wrap: wrap; padding: .5rem 1rem;
          background: var(--card); border-bottom: 1px solid var(--line);
        }
        .brand {
          display: flex; align-items: center; gap: .5rem; font-weight: 650; font-size: 1.05rem; color: inherit;
          text-decoration: none;
        }
        .connection { margin: 0; }
        .tools { margin-left: auto; display: flex; align-items: center; gap: .4rem; flex-wrap: wrap; }
        #nav { grid-area: nav; padding: .75rem .5rem; }
        #nav:empty { display: none; }
        #nav ul { list-style: none; margin: 0; padding: 0; position: sticky; top: .75rem; }
        #nav a {
          display: flex; justify-content: space-between; gap: .5rem; padding: .35rem .6rem; margin-bottom: 2px;
          border-radius: 6px; color: inherit; text-decoration: none;
        }
        #nav a:hover { background: var(--neutral-back); }
        #nav a[aria-current] { background: var(--tint); color: var(--accent); font-weight: 600; }
        #nav .count { background: var(--bad-back); color: var(--bad); border-radius: 9px; padding: 0 .45rem; font-size: .8rem; }
        #nav .count.waiting { background: var(--wait-back); color: var(--wait); }
        #banners { grid-area: banners; padding: 0 1rem; }
        main { grid-area: main; padding: 1rem; max-width: 78rem; width: 100%; min-width: 0; }
        .stale main { filter: grayscale(1); }

        button, select, input {
          font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
          padding: .3rem .6rem; min-height: 2rem; max-width: 100%;
        }
        button { cursor: pointer; }
        button:hover:enabled { border-color: var(--accent); }
        button:disabled { color: var(--muted); cursor: default; opacity: .6; }
        button.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
        button.danger { border-color: var(--bad); color: var(--bad); font-weight: 600; }
        .tools button { border-color: transparent; background: none; color: var(--muted); padding: .2rem .5rem; }
        input[type="checkbox"] { min-height: 0; width: 1.05rem; height: 1.05rem; margin: 0; accent-color: var(--accent); flex: none; }
        input, select { border-color: light-dark(#868f9b, #6c7683); }
        input::placeholder { color: var(--muted); opacity: 1; }
        label { font-size: .86rem; color: var(--muted); }
        .check { display: inline-flex; align-items: center; gap: .45rem; color: var(--text); }
        .actions { display: flex; flex-wrap: wrap; gap: .4rem; margin: .5rem 0; }

        dialog {
          border: 1px solid var(--line); border-radius: 10px; background: var(--card); color: var(--text); padding: 1.1rem;
          width: min(34rem, calc(100vw - 2rem)); max-height: calc(100vh - 4rem); overflow: auto;
        }
        dialog::backdrop { background: rgb(10 14 20 / .5); }
        dialog .actions { justify-content: flex-end; margin: 1rem 0 0; }
        dialog input:not([type]) { width: 100%; margin: .2rem 0 .4rem; }
        dialog .files { max-height: 40vh; overflow: auto; }
        .toast {
          position: fixed; right: 1rem; bottom: 1rem; max-width: min(30rem, calc(100vw - 2rem)); padding: .6rem .9rem;
          border-radius: 8px; background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--accent);
          box-shadow: 0 4px 18px rgb(0 0 0 / .2); overflow-wrap: anywhere; z-index: 5;
        }
        .toast.bad { border-left-color: var(--bad); }
        .toast.good { border-left-color: var(--good); }
        .banner {
          display: flex; align-items: center; gap: .5rem 1rem; flex-wrap: wrap; border-radius: 8px; padding: .45rem .8rem;
          margin: .75rem 0 0; background: var(--neutral-back); overflow-wrap: anywhere;
        }
        main .banner { margin: 0 0 .75rem; }
        .banner p { margin: 0; flex: 1 1 16rem; }
        .banner.bad { background: var(--bad-back); color: var(--bad); }
        .banner.waiting { background: var(--wait-back); color: var(--wait); }
        .banner.good { background: var(--good-back); color: var(--good); }

        @media (max-width: 46rem) {
          body { grid-template: "top" auto "nav" auto "banners" auto "main" 1fr / minmax(0, 1fr); }
          .top { padding: .5rem .75rem; }
          #nav { padding: .4rem .5rem 0; }
          #nav ul { display: flex; flex-wrap: wrap; gap: .15rem; position: static; }
          #nav a { padding: .3rem .5rem; margin: 0; }
          #banners { padding: 0 .75rem; }
          main { padding: .75rem; }
        }
        @media (prefers-reduced-motion: no-preference) {
          progress::-webkit-progress-value { transition: inline-size .6s linear; }
          button { transition: border-color .15s; }
        }

        """#
}
