import Foundation
import Testing

@testable import InletDashboard

/// The files of the page fit together, and do nothing that the page's Content-Security-Policy forbids.
/// `DashboardCommandTests` requests them from the program.
@Suite struct WebFilesTests {
    /// Text by name.
    private let files: [String: String]
    /// The page, and the kiosk.
    private let pages: [String]

    init() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/InletWeb/page")
        let found = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let files = try Dictionary(
            uniqueKeysWithValues: found.map { ($0.lastPathComponent, try String(contentsOf: $0, encoding: .utf8)) })
        self.files = files
        pages = try ["index.html", "kiosk.html"].map { try #require(files[$0]) }
    }

    @Test func `The pages and their scripts refer to existing files only, and to each of them`() {
        let inPages = pages.flatMap { page in page.matches(of: #/(?:href|src)="/([^"]*)"/#).map { String($0.1) } }
        let inScripts = (files.values.flatMap(Self.imports) + opened).map { "assets/\($0.file)" }
        let itself = ["assets/index.html", "assets/kiosk.html"]
        #expect(Set(inPages + inScripts + itself) == Set(files.keys.map { "assets/\($0)" }))
    }

    @Test func `A script uses all its imports, and the other script exports them`() throws {
        for (name, text) in files {
            let words = text.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
            for (other, imported) in Self.imports(of: text) {
                let exported = try Self.exports(of: #require(files[other]))
                #expect(imported.subtracting(exported).isEmpty, "\(name), of \(other)")
                let used = imported.filter { word in words.count { $0 == word } > 1 }
                #expect(used == imported, "\(name), of \(other)")
            }
        }
    }

    @Test func `Each export of a script is an import of another one`() {
        let imported = (files.values.flatMap(Self.imports) + opened).flatMap { $0.names }
        for (name, text) in files {
            #expect(Self.exports(of: text).subtracting(imported).isEmpty, "\(name)")
        }
    }

    @Test func `Numbers and times follow the browser's language, by one script`() throws {
        for (name, text) in files where name != "format.js" {
            for word in ["Intl.", "toLocale", "navigator.language"] {
                #expect(!text.contains(word), "\(name): \(word)")
            }
        }
        #expect(try #require(files["format.js"]).contains("navigator.languages"))
        #expect(pages.allSatisfy { $0.contains(#"<html lang="en">"#) })
    }

    private static func imports(of text: String) -> [(file: String, names: Set<String>)] {
        text.matches(of: #/import \{([^}]*)\} from "\./([^"]+)"/#).map { match in
            (String(match.2), Set(match.1.split { $0 == "," || $0.isWhitespace }.map(String.init)))
        }
    }

    /// What the list of views imports when somebody opens one: each script has its `view`.
    private var opened: [(file: String, names: Set<String>)] {
        files["views.js", default: ""].matches(of: #/import\("\./([^"]+)"\)/#).map { (String($0.1), ["view"]) }
    }

    private static func exports(of text: String) -> Set<String> {
        let found = text.matches(of: #/(?m)^export (?:async )?(?:function|const|let|class) (\w+)/#)
        return Set(found.map { String($0.1) })
    }

    @Test func `The page shows the agent's findings, and has no rules of its own`() throws {
        let health = try #require(files["health.js"])
        // A rule would read these. The sum of the balance is not a rule.
        let rules = try #require(health.split(separator: "export function balance").first)
        for word in ["failed", "expired", "parked", "journal_failing", "running", ".roots", ".destinations", ".queue"] {
            #expect(!rules.contains(word), "\(word)")
        }
        #expect(rules.contains("health.sentence") && rules.contains("health?.needing"))
        for subject in HealthFinding.Subject.allCases where subject != .files {
            #expect(rules.contains("\(subject.rawValue): [\"#/"), "\(subject) leads nowhere")
        }
    }

    @Test func `A view's script has the view, and comes when somebody opens it`() throws {
        #expect(opened.count > 1)
        for (name, _) in opened {
            #expect(Self.exports(of: try #require(files[name])).contains("view"), "\(name)")
        }
    }

    /// With its style sheets and scripts, and the view that it opens with.
    @Test(arguments: [("index.html", "overview.js"), ("index.html", "cards.js"), ("kiosk.html", "kiosk.js")])
    func `A page is small`(page: String, view: String) throws {
        let text = try #require(files[page])
        var needed = [view] + text.matches(of: #/(?:href|src)="/assets/([^"]*)"/#).map { String($0.1) }
        var seen: Set<String> = [page]
        while let next = needed.popLast() {
            guard seen.insert(next).inserted else { continue }
            needed += Self.imports(of: try #require(files[next])).map(\.file)
        }
        let bytes = seen.reduce(0) { $0 + files[$1, default: ""].utf8.count }
        #expect(bytes <= Self.mostBytes, "\(bytes) bytes")
    }

    private static let mostBytes = 96 << 10

    @Test(arguments: [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setTimeout(\"",
        "javascript:", "style=\"", "<style", "DOMParser", ".cssText",
    ])
    func `Nothing can turn data into markup or code`(word: String) {
        for (name, text) in files { #expect(!text.contains(word), "\(name)") }
    }

    @Test func `The pages have no script and no handler in themselves`() {
        for page in pages {
            #expect(page.matches(of: #/<script(?![^>]*\ssrc=)/#).isEmpty)
            #expect(page.matches(of: #/<script[^>]*>[^<]+/#).isEmpty)
            #expect(page.matches(of: #/\son\w+=/#).isEmpty)
        }
    }

    @Test func `The page requests nothing from other machines`() {
        // The name of a namespace, not an address.
        let namespace = "http://www.w3.org/2000/svg"
        for (name, file) in files {
            let text = file.replacing(namespace, with: "")
            #expect(!text.contains("http://") && !text.contains("https://"), "\(name)")
            #expect(!text.contains("url("), "\(name)")
            #expect(text.matches(of: #/["'(]\/\/\w/#).isEmpty, "\(name)")
        }
    }
}
