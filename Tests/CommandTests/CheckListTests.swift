import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// The groups, remedies and the sum of `inlet check`.
@Suite struct CheckListTests {
    @Test func `checks stand in groups, and all that is fine is summed up`() async throws {
        let result = try await Place().inlet("check")
        #expect(result.ending == .code(0), "\(result.output)")
        let titles = ["Configuration", "Folders", "Watch", "Destinations", "System"]
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(lines.filter(titles.contains) == titles, "\(result.output)")
        let checks = lines.filter { $0.hasPrefix("✓ ") }.count
        #expect(lines.last == "All \(checks) checks are fine." && checks > 5)
    }

    @Test func `programs get one object, with the code that it exits with`() async throws {
        let place = try Place()
        try FileManager.default.removeItem(atPath: place.drop.string)
        let result = try await place.inlet("check", "--json", code: 1)
        let object = try result.object()
        #expect(object["warnings"] as? Int == 1 && object["errors"] as? Int == 0 && object["exit_code"] as? Int == 1)
        let checks = try #require(object["checks"] as? [[String: Any]])
        let warning = try #require(checks.first { $0["grade"] as? String == "warning" })
        #expect(warning["group"] as? String == "watch" && warning["check"] as? String == "watch \(place.drop)")
        #expect(warning["remedy"] is String && checks.contains { $0["grade"] as? String == "ok" })
    }
}

/// What shells complete.
@Suite struct CompletionTests {
    /// The last line of a script that completes `words`, of which the last is being typed.
    private func completions(_ words: [String], _ folder: FilePath) throws -> [String] {
        let line = words.joined(separator: " ")
        let script = """
            source "$0" || exit 1
            COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="\(line)"; COMP_POINT=${#COMP_LINE}
            _inlet "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let bash = Process()
        let output = Pipe()
        bash.executableURL = URL(fileURLWithPath: "/bin/bash")
        bash.arguments = ["-c", script, folder.appending("inlet.bash").string] + words
        bash.standardOutput = output
        bash.standardInput = FileHandle.nullDevice
        try bash.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        bash.waitUntilExit()
        #expect(bash.terminationStatus == 0)
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
    }

    @Test func `the three files are written, and bash completes commands, states and destinations`() throws {
        let place = try Place()
        let (folder, inlet) = (place.folder.path.appending("completions"), try BuiltBinary.path().string)
        try Tool.run("/bin/sh", Repository.root.appending("packaging/docs/completions.sh").string, folder.string, inlet)
        for name in ["inlet.bash", "_inlet", "inlet.fish"] {
            #expect(try place.content(folder.appending(name)).count > 1000, "\(name)")
        }
        try Tool.run("/bin/bash", "-n", folder.appending("inlet.bash").string)
        #expect(try completions([inlet, "sta"], folder) == ["status"])
        #expect(try completions([inlet, "queue", "list", "--state", "fa"], folder) == ["failed"])
        let config = place.configuration.string
        #expect(try completions([inlet, "pause", "--config", config, "st"], folder) == ["store"])
        #expect(try completions([inlet, "pause", "--config", config + ".none", "st"], folder) == [])
    }

    @Test func `destinations, routes, roots and receivers are offered by their names, wherever one is wanted`() throws {
        let place = try Place(top: ["notify:\n  - { name: bell, webhook: \"http://127.0.0.1:9/\", on: [failed] }"])
        let (folder, inlet) = (place.folder.path.appending("completions"), try BuiltBinary.path().string)
        try Tool.run("/bin/sh", Repository.root.appending("packaging/docs/completions.sh").string, folder.string, inlet)
        let file = place.configuration.string
        for (words, offered) in [
            (["send", "--config", file, "--to", ""], "store"), (["limit", "--config", file, "--to", "s"], "store"),
            (["verify", "--config", file, "--destination", ""], "store"),
            (["fetch", "--config", file, "--from", ""], "store"), (["resume", "--config", file, "s"], "store"),
            (["queue", "list", "--config", file, "--destination", ""], "store"),
            (["queue", "retry", "--config", file, "--route", "a"], "all"),
            (["queue", "list", "--config", file, "--route", ""], "all"),
            (["resume", "--config", file, "--root", "/"], place.drop.string),
            (["notify", "test", "--config", file, "b"], "bell"),
        ] {
            #expect(try completions([inlet] + words, folder) == [offered], "\(words)")
        }
    }

    private static let otherShells = [("/usr/bin/zsh", "_inlet"), ("/usr/bin/fish", "inlet.fish")].filter { shell, _ in
        FileManager.default.isExecutableFile(atPath: shell)
    }

    @Test(.enabled(if: !otherShells.isEmpty, "needs zsh or fish"), arguments: otherShells)
    func `other shells can read theirs`(shell: String, name: String) throws {
        let folder = try TemporaryDirectory()
        try Tool.run(
            "/bin/sh", Repository.root.appending("packaging/docs/completions.sh").string, folder.path.string,
            BuiltBinary.path().string)
        try Tool.run(shell, "-n", folder.path.appending(name).string)
    }
}
