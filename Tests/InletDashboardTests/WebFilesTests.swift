import Foundation
import Testing

@testable import InletDashboard

/// The files of the page hold together, and keep to what the page's Content-Security-Policy allows.
/// `DashboardCommandTests` asks the program for them.
@Suite struct WebFilesTests {
    /// Text by name.
    private let files: [String: String]
    private let page: String

    init() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/InletWeb/page")
        let found = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        files = try Dictionary(
            uniqueKeysWithValues: found.map { ($0.lastPathComponent, try String(contentsOf: $0, encoding: .utf8)) })
        page = try #require(files["index.html"])
    }

    @Test func `What the page and its scripts refer to is there, and everything that is there is referred to`() {
        let inPage = page.matches(of: #/(?:href|src)="/([^"]*)"/#).map { String($0.1) }
        let inScripts = files.values.flatMap { text in Self.imports(of: text).map { "assets/\($0.file)" } }
        #expect(Set(inPage + inScripts + ["assets/index.html"]) == Set(files.keys.map { "assets/\($0)" }))
    }

    @Test func `What a script imports, the other one exports and the first one uses`() throws {
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

    @Test func `What a script exports, another one imports`() {
        let imported = files.values.flatMap { text in Self.imports(of: text).flatMap { $0.names } }
        for (name, text) in files {
            #expect(Self.exports(of: text).subtracting(imported).isEmpty, "\(name)")
        }
    }

    private static func imports(of text: String) -> [(file: String, names: Set<String>)] {
        text.matches(of: #/import \{([^}]*)\} from "\./([^"]+)"/#).map { match in
            (String(match.2), Set(match.1.split { $0 == "," || $0.isWhitespace }.map(String.init)))
        }
    }

    private static func exports(of text: String) -> Set<String> {
        let found = text.matches(of: #/(?m)^export (?:async )?(?:function|const|let|class) (\w+)/#)
        return Set(found.map { String($0.1) })
    }

    @Test func `What needs a person is the agent's to say, and the page says it`() throws {
        let health = try #require(files["health.js"])
        // Whoever decides looks at these; how the balance adds up is no such question.
        let rules = try #require(health.split(separator: "export function balance").first)
        for word in ["failed", "expired", "parked", "journal_failing", "running", ".roots", ".destinations", ".queue"] {
            #expect(!rules.contains(word), "\(word)")
        }
        #expect(rules.contains("health.sentence") && rules.contains("health?.needing"))
        for subject in HealthFinding.Subject.allCases where subject != .files {
            #expect(rules.contains("\(subject.rawValue): [\"#/"), "\(subject) leads nowhere")
        }
    }

    @Test func `All of it is small`() {
        let bytes = files.values.reduce(0) { $0 + $1.utf8.count }
        #expect(bytes <= Self.mostBytes, "\(bytes) bytes")
    }

    private static let mostBytes = 112 << 10

    @Test(arguments: [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setTimeout(\"",
        "javascript:", "style=\"", "<style", "DOMParser", ".cssText",
    ])
    func `Nothing can turn data into markup or code`(word: String) {
        for (name, text) in files { #expect(!text.contains(word), "\(name)") }
    }

    @Test func `The page has no script and no handler in itself`() {
        #expect(page.matches(of: #/<script(?![^>]*\ssrc=)/#).isEmpty)
        #expect(page.matches(of: #/<script[^>]*>[^<]+/#).isEmpty)
        #expect(page.matches(of: #/\son\w+=/#).isEmpty)
    }

    @Test func `Nothing is asked of another machine`() {
        // A namespace's name is no address.
        let namespace = "http://www.w3.org/2000/svg"
        for (name, file) in files {
            let text = file.replacing(namespace, with: "")
            #expect(!text.contains("http://") && !text.contains("https://"), "\(name)")
            #expect(!text.contains("url("), "\(name)")
            #expect(text.matches(of: #/["'(]\/\/\w/#).isEmpty, "\(name)")
        }
    }
}
