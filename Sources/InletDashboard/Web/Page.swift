extension WebFiles {
    /// What every view is drawn in. Works without a script only as far as it says that it needs one.
    static let page = #"""
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>Inlet</title>
        <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
        <link rel="stylesheet" href="/assets/style.css">
        <link rel="stylesheet" href="/assets/views.css">
        <script src="/assets/theme.js"></script>
        <script type="module" src="/assets/app.js"></script>
        </head>
        <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header class="top">
        <a class="brand" href="#/"><img src="/assets/icon.svg" alt="" width="20" height="20">Inlet</a>
        <p id="connection" class="connection"></p>
        <div id="tools" class="tools"></div>
        </header>
        <nav id="nav" aria-label="Views"></nav>
        <div id="banners"></div>
        <main id="main" tabindex="-1"><noscript><p>This page needs JavaScript. Without it, use
        <code>inlet status</code> in a terminal.</p></noscript></main>
        <div id="said" class="hidden" role="status" aria-live="polite"></div>
        <div id="toast" class="toast" hidden></div>
        <dialog id="dialog" aria-labelledby="dialog-title"></dialog>
        </body>
        </html>

        """#

    /// An arrow into a tray.
    static let icon = #"""
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#0b63ce"/>
        <path d="M12 5v8m-3.5-3.5L12 13l3.5-3.5M5.5 14v3.5h13V14" fill="none" stroke="#fff" stroke-width="2"
        stroke-linecap="round" stroke-linejoin="round"/></svg>

        """#

    /// Before the first paint, so that nobody sees the other theme flash.
    static let scriptTheme = #"""
        try {
            const theme = localStorage.getItem("inlet-theme");
            if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
        } catch { /* A browser that keeps nothing: the system's theme. */ }

        """#
}
