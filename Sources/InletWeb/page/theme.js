// Before the first paint, so that nobody sees the other theme flash: a plain script, for which the page waits.
try {
    const theme = localStorage.getItem("inlet-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* A browser that keeps nothing: the system's theme. */ }
