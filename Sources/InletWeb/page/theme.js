// A plain script, which the page waits for: it sets the theme before the first paint, so that nothing flashes.
try {
    const theme = localStorage.getItem("inlet-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* Without storage, the system's theme applies. */ }
