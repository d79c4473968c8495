import Foundation
import Testing

@testable import InletDashboard

/// The web page's files hold together, and keep to what the page's Content-Security-Policy allows.
@Suite struct WebFilesTests {
    private static let paths = Set(WebFiles.all.map(\.path))

    private static var scripts: [WebFile] { WebFiles.all.filter { $0.type.hasPrefix("text/javascript") } }

    @Test func `Each file has a path of its own, a type and a text`() {
        #expect(Self.paths.count == WebFiles.all.count)
        #expect(Self.paths.contains("/"))
        for file in WebFiles.all {
            #expect(file.path == "/" || file.path.hasPrefix("/assets/"), "\(file.path)")
            #expect(!file.text.isEmpty, "\(file.path)")
            #expect(file.type.contains("/"), "\(file.path)")
        }
    }

    @Test func `What the page and its scripts refer to is there, and everything that is there is referred to`() throws {
        var used: Set = ["/"]
        let page = try #require(WebFiles.all.first { $0.path == "/" })
        for match in page.text.matches(of: #/(?:href|src)="(/[^"]*)"/#) { used.insert(String(match.1)) }
        for script in Self.scripts {
            for match in script.text.matches(of: #/from "\.\/([^"]+)"/#) { used.insert("/assets/\(match.1)") }
        }
        #expect(used.subtracting(Self.paths).isEmpty)
        #expect(Self.paths.subtracting(used).isEmpty)
    }

    @Test func `What a script imports, the other one exports`() throws {
        for script in Self.scripts {
            for match in script.text.matches(of: #/import \{([^}]*)\} from "\.\/([^"]+)"/#) {
                let source = try #require(WebFiles.all.first { $0.path == "/assets/\(match.2)" })
                for part in match.1.split(separator: ",") {
                    let name = part.split(separator: " ").first.map(String.init) ?? ""
                    let exported = ["function \(name)(", "async function \(name)(", "const \(name) ", "class \(name) "]
                    #expect(
                        exported.contains { source.text.contains("export \($0)") },
                        "\(script.path) imports \(name) of \(source.path)")
                }
            }
        }
    }

    @Test func `What needs a person is the agent's to say, and the page says it`() throws {
        let health = try #require(WebFiles.all.first { $0.path == "/assets/health.js" }).text
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
        let bytes = WebFiles.all.reduce(0) { $0 + $1.text.utf8.count }
        #expect(bytes <= Self.mostBytes, "\(bytes) bytes")
    }

    private static let mostBytes = 112 << 10

    @Test(arguments: [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setTimeout(\"",
        "javascript:", "style=\"", "<style", "DOMParser", ".cssText",
    ])
    func `Nothing can turn data into markup or code`(word: String) {
        for file in WebFiles.all { #expect(!file.text.contains(word), "\(file.path)") }
    }

    @Test func `The page has no script and no handler in itself`() throws {
        let page = try #require(WebFiles.all.first { $0.path == "/" })
        #expect(page.text.matches(of: #/<script(?![^>]*\ssrc=)/#).isEmpty)
        #expect(page.text.matches(of: #/<script[^>]*>[^<]+/#).isEmpty)
        #expect(page.text.matches(of: #/\son\w+=/#).isEmpty)
    }

    @Test func `Nothing is asked of another machine`() {
        // A namespace's name is no address.
        let namespace = "http://www.w3.org/2000/svg"
        for file in WebFiles.all {
            let text = file.text.replacing(namespace, with: "")
            #expect(!text.contains("http://") && !text.contains("https://"), "\(file.path)")
            #expect(!text.contains("url("), "\(file.path)")
            #expect(text.matches(of: #/["'(]\/\/\w/#).isEmpty, "\(file.path)")
        }
    }
}
