import ArgumentParser
import Foundation
import InletConfig
import InletCore
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import inlet

/// Every configuration and every command of the README and of the manual is one that the program takes.
@Suite struct ManualTests {
    private static let pages = ManualPage.all

    @Test func `the pages are there, and the README is one page`() {
        let names = Set(Self.pages.map(\.description))
        #expect(names.isSuperset(of: ["README.md", "GetStarted.md", "FirstDelivery.tutorial", "Glossary.md"]))
        #expect(Self.pages[0].text.split(separator: "\n", omittingEmptySubsequences: false).count <= 251)
        #expect(Self.pages.flatMap(\.configurations).count >= 10)
        #expect(Self.pages.flatMap(\.commands).count >= 50)
    }

    @Test(arguments: pages)
    func `every configuration of a page is read without a mistake`(_ page: ManualPage) {
        for configuration in page.configurations {
            var refusals: [String] = []
            for kind in DestinationKinds.types {
                let text = ManualConfiguration(configuration).complete(kind: kind)
                guard let refusal = Self.refusal(of: text) else {
                    refusals = []
                    break
                }
                refusals.append("\(text)\n\(refusal)")
            }
            #expect(refusals.isEmpty, "\(page): \(refusals.first ?? "")")
        }
    }

    /// The mistakes that the reader reports. Every secret has a value.
    private static func refusal(of text: String) -> String? {
        let names = text.matches(of: /\$\{env:(\w+)\}/).map { String($0.1) }
        var defaults = ConfigDefaults(stateDirectory: "/var/lib/inlet", home: "/root", workingDirectory: "/srv")
        defaults.users = { _ in .found(1000) }
        // Tokens must differ, and some of them are addresses.
        let environment = Dictionary(names.map { ($0, "https://secret.example/\($0)") }) { first, _ in first }
        do {
            _ = try ConfigFile.parse(
                text: text.utf8, file: "/srv/inlet.yaml", types: DestinationKinds.types,
                environment: environment, defaults: defaults)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test(arguments: pages)
    func `every command of a page is one that the command line takes`(_ page: ManualPage) {
        for words in page.commands {
            do {
                _ = try Inlet.parseAsRoot(words)
            } catch {
                // --help and --version are answers.
                let refusal = Inlet.fullMessage(for: error)
                #expect(
                    Inlet.exitCode(for: error) == .success, "\(page): inlet \(words.joined(separator: " ")): \(refusal)"
                )
            }
        }
    }

    @Test(arguments: pages)
    func `every script and every test that a page names is there`(_ page: ManualPage) {
        for path in page.scripts {
            #expect(FileManager.default.fileExists(atPath: Repository.root.pushing(FilePath(path)).string), "\(path)")
        }
        for suite in page.suites { #expect(Self.suites.contains(suite), "\(suite)") }
    }

    /// The names of all suites.
    private static let suites: Set<String> = {
        let folder = Repository.root.appending("Tests").string
        let files = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        let texts = files.filter { $0.hasSuffix(".swift") }.compactMap {
            try? String(contentsOfFile: folder + "/" + $0, encoding: .utf8)
        }
        return Set(texts.flatMap { $0.matches(of: /\bstruct (\w+Tests)\b/).map { String($0.1) } })
    }()

    @Test func `command lines are found wherever a page has them`() {
        let script = """
            inlet run --dry-run   # says what it would do
            sudo -u inlet inlet check --config '/etc/my inlet.yaml'
            sudo sh -c 'umask 027; inlet init'
            docker compose exec inlet inlet-container status --json | jq .
            KEY=x inlet send a.mov \\
                "b#.mov" > log 2>&1 && cp a ~/Drop
            packaging/deb/build.sh; echo "$(inlet --version)"
            """
        let expected = [
            ["run", "--dry-run"], ["check", "--config", "/etc/my inlet.yaml"], ["init"], ["status", "--json"],
            ["send", "a.mov", "b#.mov"], ["--version"],
        ]
        #expect(ShellText.inletCommands(in: script) == expected)
    }
}

/// README.md, or a page of the manual.
struct ManualPage: Sendable, CustomStringConvertible {
    let description: String
    let text: String
    /// The contents of its fenced blocks, and the files that a tutorial shows, each with its language.
    let blocks: [(language: String, text: String)]

    private static let folder = Repository.root.pushing("Sources/inlet/inlet.docc")

    /// The README first.
    static let all: [ManualPage] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []
        let pages = names.filter { $0.hasSuffix(".md") || $0.hasSuffix(".tutorial") }.sorted()
        return ([Repository.root.appending("README.md")] + pages.map { folder.appending($0) }).map { ManualPage($0) }
    }()

    init(_ file: FilePath) {
        description = file.lastComponent?.string ?? ""
        let text = (try? String(contentsOfFile: file.string, encoding: .utf8)) ?? ""
        self.text = text
        let fenced = text.matches(of: /(?m)^[ ]*```(?<language>\w+)\n(?<text>(?s:.*?))^[ ]*```$/).map {
            (String($0.output.language), Self.withoutIndentation(String($0.output.text)))
        }
        let shown = text.matches(of: /@Code\(name: ".*?", file: (?<file>[\w.-]+\.(?<language>\w+))\)/).map { match in
            let path = Self.folder.appending(String(match.output.file)).string
            return (String(match.output.language), (try? String(contentsOfFile: path, encoding: .utf8)) ?? "")
        }
        blocks = fenced + shown
    }

    private static func withoutIndentation(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let indentation = lines.filter { !$0.isEmpty }.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { $0.dropFirst(indentation) }.joined(separator: "\n")
    }

    func blocks(_ language: String) -> [String] { blocks.filter { $0.language == language }.map(\.text) }

    /// Its configurations; files of Docker and of Prometheus have other keys.
    var configurations: [String] {
        blocks("yaml").filter { $0.firstMatch(of: /(?m)^(services|volumes|scrape_configs|groups|rule_files):/) == nil }
    }

    /// The words after `inlet` of each of its commands.
    var commands: [[String]] { blocks("sh").flatMap { ShellText.inletCommands(in: $0) } }

    var scripts: Set<String> {
        Set(text.matches(of: /(?:^|[^\w\/.])(?:\.\/)?(packaging\/[\w\/.-]*\w)/).map { String($0.1) })
    }

    var suites: Set<String> { Set(text.matches(of: /`(\w+Tests)`/).map { String($0.1) }) }
}

/// A configuration of a page, or a part of one.
struct ManualConfiguration {
    private let text: String

    init(_ text: String) { self.text = text.replacing(/\$\{file:[^}]*\}/, with: "secret") }

    /// With the destinations, the watched folder and the route that its other keys need.
    ///
    /// - Parameter kind: what the destinations are that the text only names.
    func complete(kind: DestinationType) -> String {
        var text = text
        let defined = Set(names(below: "destinations"))
        let named = text.matches(of: /\b(?:to|storage): *(?:\[([^\]]*)\]|([\w-]+))/).flatMap { match in
            (match.1 ?? match.2 ?? "").split(whereSeparator: { ", ".contains($0) }).map(String.init)
                .filter { !$0.contains("@") }
        }
        var missing = Set(named).subtracting(defined).sorted()
        if defined.isEmpty, missing.isEmpty { missing = ["store"] }
        let entries = missing.map { "\($0): { \(Self.keys(of: kind.name)) }" }
        let indentation = String(
            repeating: " ", count: text.firstMatch(of: /(?m)^destinations:.*\n(?:[ ]*#.*\n|\n)*([ ]+)/)?.1.count ?? 2)
        let lines = (entries + (kind.namesStorage ? ["bucket: { \(Self.keys(of: "s3")) }"] : [])).map {
            indentation + $0 + "\n"
        }.joined()
        if let key = text.firstRange(of: /(?m)^destinations:.*\n/) {
            if !missing.isEmpty { text.insert(contentsOf: lines, at: key.upperBound) }
        } else {
            text += "\ndestinations:\n" + lines
        }
        if text.firstMatch(of: /(?m)^watch:/) == nil { text += "\nwatch: [{ path: /srv/drop }]\n" }
        if text.firstMatch(of: /(?m)^routes:/) == nil {
            // `notify` names routes.
            let routes = text.firstMatch(of: /\broutes: *\[([^\]]*)\]/)?.1.split(whereSeparator: { ", ".contains($0) })
            let target = defined.sorted().first ?? missing[0]
            text += "\nroutes:\n" + (routes ?? ["all"]).map { "  - { name: \($0), to: \(target) }\n" }.joined()
        }
        return text
    }

    /// The names of the entries below a top-level key.
    private func names(below key: String) -> [String] {
        let lines = text.split(separator: "\n").drop { !$0.hasPrefix("\(key):") }.dropFirst()
            .prefix { $0.hasPrefix(" ") || $0.hasPrefix("#") }
        guard let first = lines.first(where: { !$0.drop { $0 == " " }.hasPrefix("#") }) else { return [] }
        let indentation = first.prefix { $0 == " " }
        return lines.compactMap { line in
            guard line.hasPrefix(indentation) else { return nil }
            return line.dropFirst(indentation.count).prefixMatch(of: /([\w-]+):/).map { String($0.1) }
        }
    }

    private static func keys(of kind: String) -> String {
        switch kind {
        case "folder": "type: folder, path: /srv/library"
        case "r2": "type: r2, api: \"https://storage.example.com\", api_key: secret, public_url: \"https://a.example\""
        case "gighive": "type: gighive, url: \"https://gighive.example\", user: uploader, password: secret"
        case "vopi": "type: vopi, url: \"https://vopi.example\", auth: { api_key: secret }, results: /srv/products"
        case "roboscope": "type: roboscope, url: \"https://roboscope.example/api/v1\", storage: bucket"
        default: "type: s3, bucket: media, access_key: a, secret_key: b, public_url: \"https://a.example\""
        }
    }
}

/// Splits the commands of a page as a shell does.
enum ShellText {
    /// The words behind `inlet`, of each command of a script that is one of ours.
    static func inletCommands(in script: String) -> [[String]] {
        commands(in: script).flatMap { words -> [[String]] in
            var words = words[...]
            while let word = words.first, word == "sudo" || word == "exec" || word.contains(/^[A-Z_]+=/) {
                words = words.dropFirst(word == "sudo" && words.dropFirst().first == "-u" ? 3 : 1)
            }
            let inner = words.flatMap { word in
                word.matches(of: /\$\(([^)]*)\)/).flatMap { inletCommands(in: String($0.1)) }
            }
            guard let program = words.first else { return inner }
            let rest = Array(words.dropFirst())
            switch program {
            case "sh", "bash": return inner + (rest.first == "-c" ? inletCommands(in: rest.last ?? "") : [])
            case "docker", "podman":
                let run =
                    rest.firstIndex(of: "inlet-container")
                    ?? (rest.contains("run") ? rest.firstIndex(of: "inlet") : nil)
                return inner + (run.map { [Array(rest[($0 + 1)...])] } ?? [])
            case _ where program == "inlet" || program.hasSuffix("/inlet"): return inner + [rest]
            default: return inner
            }
        }
    }

    /// The words of each command; redirections and comments are left out.
    static func commands(in script: String) -> [[String]] {
        var (commands, words, word): ([[String]], [String], String?) = ([], [], nil)
        var quote: Character?
        func endWord() {
            if let word { words.append(word) }
            word = nil
        }
        func endCommand() {
            endWord()
            if !words.isEmpty { commands.append(withoutRedirections(words)) }
            words = []
        }
        var characters = Array(script.replacing("\\\n", with: " "))[...]
        while let character = characters.popFirst() {
            switch (quote, character) {
            case (let open?, _): if open == character { quote = nil } else { word = (word ?? "") + String(character) }
            case (nil, "'"), (nil, "\""):
                quote = character
                word = word ?? ""
            case (nil, "$") where characters.first == "(":
                // A command in a command is a word here, and looked at as such.
                let end = characters.firstIndex(of: ")") ?? characters.endIndex - 1
                word = (word ?? "") + "$" + String(characters[...end])
                characters = characters[(end + 1)...]
            case (nil, "#") where word == nil: characters = characters.drop { $0 != "\n" }
            case (nil, "&") where word?.hasSuffix(">") == true: word = (word ?? "") + "&"
            case (nil, "\n"), (nil, ";"), (nil, "|"), (nil, "&"): endCommand()
            case (nil, " "): endWord()
            default: word = (word ?? "") + String(character)
            }
        }
        endCommand()
        return commands
    }

    private static func withoutRedirections(_ words: [String]) -> [String] {
        var (kept, isTarget) = ([String](), false)
        for word in words {
            if isTarget { isTarget = false; continue }
            guard let match = word.prefixMatch(of: /\d?(?:>>?|<)(?<rest>.*)/) else {
                kept.append(word)
                continue
            }
            isTarget = match.output.rest.isEmpty
        }
        return kept
    }
}
