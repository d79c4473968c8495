import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What scripts see: exit codes, and a sentence about what to do.
@Suite(.serialized) struct ExitCodeTests {
    @Test func `a wrong configuration is 78, with file, line, column and a caret under the place`() async throws {
        let place = try Place()
        let text = ConfigText().text.replacing("settle: 0s", with: "setle: 0s")
        try place.configure(text: text)
        let line =
            try #require(
                text.split(separator: "\n", omittingEmptySubsequences: false).firstIndex { $0.contains("setle") }) + 1
        let run = try await place.inlet(
            "status", code: 78, errors: "\(place.configuration.string):\(line):5: unknown key 'setle'",
            "did you mean 'settle'?")
        let shown = run.errors.split(separator: "\n")
        let caret = try #require(shown.firstIndex { $0.contains("^") && $0.allSatisfy { " ^".contains($0) } })
        let column = shown[caret].prefix { $0 == " " }.count
        #expect(shown[caret - 1].dropFirst(column).hasPrefix("setle"))
    }

    @Test func `every command refuses a wrong configuration the same way`() async throws {
        let place = try Place()
        try place.configure(text: "watch: [\n")
        for command in ["run", "check", "status", "receipts", "pause", "resume"] {
            let result = try await place.inlet(command, code: 78)
            #expect(result.output.isEmpty)
        }
    }

    @Test func `no configuration is 78 and names the places that were searched`() async throws {
        let folder = try TemporaryDirectory()
        try await InletProcess.run(
            ["run"], in: folder.path, code: 78, errors: "--config FILE",
            folder.path.appending(".config").appending("inlet").string)
        try await InletProcess.run(
            ["run", "--config", "absent.yaml"], in: folder.path, code: 78, errors: "absent.yaml")
    }

    @Test func `a configuration is found through a symlink, as dotfiles have it`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("state_dir: state\n".utf8, to: "dotfiles/inlet.yaml")
        try folder.makeDirectory(".config/inlet")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path.pushing(".config/inlet/inlet.yaml").string, withDestinationPath: file.string)
        try await InletProcess.run(["config", "show"], in: folder.path, code: 0)
    }

    @Test func `what cannot be read or is wrong is said, and is not taken for nothing`() async throws {
        let folder = try TemporaryDirectory()
        let launcher = ["/bin/sh", "-c", "exec \"$@\" < /", "sh"]
        try await InletProcess.run(
            ["tail", "-"], in: folder.path, launcher: launcher, code: 1, errors: "standard input cannot be read")
        // It says which proxy the way of a download is.
        let wrong = try folder.write("proxy: [\n".utf8, to: "wrong.yaml")
        try await InletProcess.run(
            ["fetch", "http://127.0.0.1:1/a.mov", "--config", wrong.string], in: folder.path, code: 78)
        let place = try Place()
        let loop = place.drop.appending("loop").string
        try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
        try await place.inlet("route", loop + "/a.bin", says: "cannot be read: ")
    }

    @Test func `a configuration with nothing to watch is 78`() async throws {
        let place = try Place()
        try place.configure(text: "state_dir: state\n")
        try await place.inlet("run", code: 78, errors: "no watch")
    }

    @Test func `wrong usage is 64`() async throws {
        let folder = try TemporaryDirectory()
        for arguments in [
            ["bogus"], ["run", "--bogus"], ["send"], ["queue", "show"], ["queue", "clear"], ["queue", "retry"],
        ] {
            let process = try await InletProcess.run(arguments, in: folder.path, code: 64)
            #expect(!process.errors.isEmpty)
        }
    }

    @Test func `a word that is nearly a command or an option gets the right one`() async throws {
        let folder = try TemporaryDirectory()
        for (words, hint) in [
            (["statsu"], "did you mean 'status'?"), (["queue", "lst"], "did you mean 'list'?"),
            (["status", "--jsno"], "Did you mean '--json'?"), (["vopi", "jbos"], "did you mean 'jobs'?"),
        ] {
            try await InletProcess.run(words, in: folder.path, code: 64, errors: hint)
        }
        let far = try await InletProcess.run(["zzzzzzzz"], in: folder.path, code: 64)
        #expect(!far.errors.lowercased().contains("did you mean"), "\(far.errors)")
    }

    @Test func `the former name of logs still works, and no help shows it`() async throws {
        let folder = try TemporaryDirectory()
        try await InletProcess.run(["logs", "schema"], in: folder.path, code: 0)
        let help = try await InletProcess.run(["--help"], in: folder.path, code: 0)
        #expect(!help.output.contains(/\n\s+log\s/) && help.output.contains(/\n\s+logs\s/), "\(help.output)")
    }

    @Test func `status has an answer at any moment of an agent's start and end`() async throws {
        let place = try Place()
        for _ in 0..<5 {
            let agent = try place.start("run")
            try await place.inlet("status", code: 0)
            agent.signal(SIGKILL)
            _ = try await agent.ending()
            try await place.inlet("status", code: 0)
        }
    }

    @Test func `a second agent on the same state_dir is 75 and leaves the first alone`() async throws {
        let place = try Place()
        let first = try await place.run()
        try await place.inlet("run", code: 75, errors: "another inlet is running")
        try place.put("still works.txt", bytes(10))
        try await first.line("job.finished")
        #expect(try await first.stop() == .code(0))
        try await place.inlet("status", code: 0)
    }

    /// The lock of an agent in the hands of somebody else.
    private func heldLock(_ place: Place) throws -> FileHandle {
        let lock = try FileHandle(
            forWritingTo: URL(fileURLWithPath: place.folder.write(Data(), to: "state/lock").string))
        #expect(flock(lock.fileDescriptor, LOCK_EX | LOCK_NB) == 0)
        return lock
    }

    @Test func `an agent waits for a lock that no agent holds`() async throws {
        let place = try Place()
        let lock = try heldLock(place)
        // It has come to the lock once it has closed the file again.
        let closings = inotify_init1(O_CLOEXEC)
        #expect(inotify_add_watch(closings, place.state.appending("lock").string, UInt32(IN_CLOSE_WRITE)) >= 0)
        let (held, isFree) = (lock.fileDescriptor, Switch())
        // On a thread of its own: the agent waits for five seconds, and a task of a test may wait longer for its turn.
        Thread.detachNewThread {
            var waiting = pollfd(fd: closings, events: Int16(POLLIN), revents: 0)
            if poll(&waiting, 1, 120_000) == 1 {
                isFree.turnOn()
                flock(held, LOCK_UN)
            }
            close(closings)
        }
        let agent = try place.start("run")
        try await agent.line("agent.ready")
        #expect(isFree.isOn)
        #expect(try await agent.stop() == .code(0))
        withExtendedLifetime(lock) {}
    }

    @Test func `a lock that stays held is 75 in the end`() async throws {
        let place = try Place()
        let lock = try heldLock(place)
        try await place.inlet("run", code: 75, errors: "another inlet is running")
        withExtendedLifetime(lock) {}
    }

    @Test func `a check with an unreachable destination is 69, with a missing folder 1, and 0 when all is fine`()
        async throws
    {
        try await withSpiral { place, _ in
            try await place.inlet("check", code: 0, says: "writer check", "✓ state_dir: \(place.state) is ready to use")
            try FileManager.default.removeItem(atPath: place.drop.string)
            let warned = try await place.inlet(
                "check", code: 1, says: "! watch \(place.drop): not there yet", "\n    → create it or mount its disk")
            #expect(warned.output.hasSuffix("\n1 warning: see watch \(place.drop)\n"), "\(warned.output)")
            try place.configure(.spiral(try FreePort.any()))
            let down = try await place.inlet("check", code: 69, says: "destination store", "    → check the server")
            let last = "\n1 warning, 1 error: see destination store, watch \(place.drop)\n"
            #expect(down.output.hasSuffix(last), "\(down.output)")
        }
    }

    @Test func `a check with a wrong key says so and is 69`() async throws {
        try await withSpiral { place, _ in
            try place.configure(replacing: ConfigText.apiKey, with: "another-key-5512")
            let result = try await place.inlet("check", code: 69)
            let said = result.output.split(separator: "\n").drop { !$0.hasPrefix("✗ ") }.prefix(2)
            #expect(said.first?.hasPrefix("✗ destination store: ") == true, "\(result.output)")
            #expect(said.first?.contains("was answered with 401") == true, "\(result.output)")
            let remedy = "    → update the credentials of 'store'"
            #expect(said.last?.hasPrefix(remedy) == true, "\(result.output)")
            #expect(result.output.hasSuffix("\n1 error: see destination store\n"), "\(result.output)")
            #expect(!(result.output + result.errors).contains("another-key-5512"))
        }
    }

    @Test func `check --upload stores a test object and says how it was verified`() async throws {
        try await withSpiral { place, sandbox in
            try await place.inlet("check", "--upload", code: 0, says: "stored a test object, verified by")
            #expect(sandbox.objects().map(\.key).allSatisfy { $0.hasPrefix("inlet-check/") })
            #expect(sandbox.objects().count == 1)
            #expect(sandbox.openUploads().isEmpty)
        }
        let place = try Place()
        try await place.inlet("check", "--upload", code: 0, says: "was removed")
    }

    @Test func `sending a refused file is 1`() async throws {
        let place = try Place(route: ["validate: { extensions: [txt] }"])
        let file = try place.folder.write(bytes(10), to: "program.exe")
        try await place.inlet("send", file.string, code: 1, errors: "extension 'exe' is not allowed")
    }
}

/// Ports that nobody listens on, and that the system gives nobody who asks for any: other tests do so all the time.
enum FreePort {
    /// Below those that the system gives (ip(7), `ip_local_port_range`).
    private static let range = 20_000...32_000

    static func any() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: range)
            if try isFree(port) { return port }
        }
        throw Errno.addressInUse
    }

    private static func isFree(_ port: Int) throws -> Bool {
        let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { throw Errno(rawValue: errno) }
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = in_port_t(port).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

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

    @Test func `two folders on one disk are called one copy`() async throws {
        let place = try Place()
        try place.folder.makeDirectory("second")
        try place.configure(
            text: """
                state_dir: state
                destinations:
                  lib: { type: folder, path: library }
                  lib2: { type: folder, path: second }
                watch: [{ path: drop }]
                routes: [{ name: all, to: [lib, lib2] }]

                """)
        let result = try await place.inlet("check", code: 0, says: "✓ copies, route all: 'lib' and 'lib2' ")
        #expect(result.output.contains("one copy"), "\(result.output)")
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

    @Test func `the three files are written, and bash completes commands, states and what the configuration names`()
        throws
    {
        let place = try Place(top: ["notify:\n  - { name: bell, webhook: \"http://127.0.0.1:9/\", on: [failed] }"])
        let (folder, inlet) = (place.folder.path.appending("completions"), try BuiltBinary.path().string)
        try Tool.run("/bin/sh", Repository.root.appending("packaging/docs/completions.sh").string, folder.string, inlet)
        for name in ["inlet.bash", "_inlet", "inlet.fish"] {
            #expect(try place.content(folder.appending(name)).count > 1000, "\(name)")
        }
        try Tool.run("/bin/bash", "-n", folder.appending("inlet.bash").string)
        let file = place.configuration.string
        for (words, offered) in [
            (["sta"], "status"), (["queue", "list", "--state", "fa"], "failed"),
            (["pause", "--config", file, "st"], "store"), (["send", "--config", file, "--to", ""], "store"),
            (["limit", "--config", file, "--to", "s"], "store"),
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
        #expect(try completions([inlet, "pause", "--config", file + ".none", "st"], folder) == [])
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
