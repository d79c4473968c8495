import InletAgent
import InletCore
import InletLinux
import SystemPackage

/// Prints a page as PDF with a browser or WeasyPrint, whichever this machine has.
enum PDFPrinter {
    private static let browsers = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    private static let weasyPrint = "weasyprint"
    private static let timeout = Duration.seconds(180)
    private static let largest = 1 << 30

    /// The PDF's bytes.
    ///
    /// - Throws: a `Refusal` with the remedy; `SystemError`.
    static func print(_ page: String) async throws -> [UInt8] {
        let folder = try WorkFolder()
        let (source, target) = (folder.path.appending("report.html"), folder.path.appending("report.pdf"))
        try DurableFile.create(Array(page.utf8), at: source, mode: 0o600)
        guard let command = command(folder.path, source, target) else {
            throw Refusal("install chromium or weasyprint; printing a PDF needs one of them (apt install weasyprint)")
        }
        var child = ChildProcess(command, environment: folder.environment, timeout: timeout)
        (child.leavesNobody, child.largestFile) = (true, Int64(largest))
        let outcome = try await child.run(on: BlockingPool(name: "pdf", threads: 1))
        if let reason = outcome.failure { throw Refusal("\(command[0]) printed no PDF: \(reason)") }
        let bytes = try DurableFile.read(target, limit: largest)
        guard bytes.starts(with: "%PDF".utf8) else { throw Refusal("\(command[0]) wrote something else than a PDF") }
        return bytes
    }

    /// A browser refuses root unless its own sandbox is off, so root prefers WeasyPrint.
    private static func command(_ folder: FilePath, _ source: FilePath, _ target: FilePath) -> [String]? {
        let isRoot = ProcessSetup.userID == 0
        let names = isRoot ? [weasyPrint] + browsers : browsers + [weasyPrint]
        guard let program = names.lazy.compactMap({ ProgramFinder.find($0) }).first else { return nil }
        if program.lastComponent?.string == weasyPrint { return [program.string, source.string, target.string] }
        return [
            program.string, "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions",
            "--disable-sync", "--disable-dev-shm-usage", "--disable-background-networking",
            "--disable-component-update",
            // The page names no server, and a browser's own questions go nowhere.
            "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=\(folder.appending("profile").string)",
            "--no-pdf-header-footer", "--print-to-pdf=\(target.string)",
        ] + (isRoot ? ["--no-sandbox"] : []) + ["file://\(source.string)"]
    }
}
