import Foundation
import InletDashboard
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// The built agent, which gives up at its start what its configuration does not name (landlock(7)).
@Suite(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
struct LandlockTests {
    private func places(_ place: Place) async throws -> (readable: [String], writable: [String]) {
        let report = try await place.inlet("status", "--json").object()["confinement"] as? [String: Any]
        return (report?["readable"] as? [String] ?? [], report?["writable"] as? [String] ?? [])
    }

    @Test func `the agent delivers and archives within its folders, and makes no file elsewhere`() async throws {
        let (place, agent) = try await Place.running(route: ["on_success: archive"])
        let line = try await agent.line("agent.confined")
        #expect(try #require(line.number("landlock")) >= 2)
        #expect(try field("NoNewPrivs", of: agent.id) == "1")
        if CallFilter.isAvailable {
            #expect(try #require(line.number("calls")) == Int64(CallFilter.count))
            // Of every thread, whenever it began.
            for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(agent.id)/task") {
                // One may have ended meanwhile.
                guard let mode = try? field("Seccomp", of: "\(agent.id)/task/\(thread)") else { continue }
                #expect(mode == "2", "\(thread)")
            }
        }
        let (readable, writable) = try await places(place)
        let own = [place.state, place.drop, place.library].map(\.string)
        #expect(Set(writable).subtracting(["/dev/null"]) == Set(own) && readable.contains("/etc"), "\(writable)")
        try await place.deliver("sub/a.bin", bytes(1000), by: agent)
        #expect(try place.content(place.drop.pushing(".inlet/done/sub/a.bin")) == bytes(1000))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a journal is backed up to where the agent may not write, by the command`() async throws {
        let (place, agent) = try await Place.running()
        let elsewhere = try TemporaryDirectory()
        let target = elsewhere.path.appending("journal.sqlite")
        for _ in 0..<2 {
            try await place.inlet("queue", "backup", target.string, code: 0, says: target.string)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path.string) == ["journal.sqlite"])
        #expect(try place.content(target).starts(with: Data("SQLite format 3".utf8)))
        let other = try elsewhere.write(bytes(10), to: "notes.txt")
        try await place.inlet("queue", "backup", other.string, code: 1, errors: "is not a backup of a journal")
        let left = try FileManager.default.contentsOfDirectory(atPath: place.state.string)
        #expect(!left.contains { $0.hasPrefix("backup-for") }, "\(left)")
        #expect(try await agent.stop() == .code(0))
    }

    /// Root may write everywhere: it is not a folder's mode that forbids it.
    @Test(arguments: [true, false])
    func `an agent could write elsewhere, and a confined one cannot`(_ isConfined: Bool) async throws {
        let (place, agent) = try await Place.running(top: ["landlock: \(isConfined ? "required" : "off")"])
        try await agent.line(isConfined ? "agent.confined" : "agent.unconfined")
        let elsewhere = try TemporaryDirectory()
        let target = elsewhere.path.appending("journal.sqlite")
        // As the agent is asked by a program that does not look first.
        let client = ControlClient(socket: place.state.appending("control.sock"))
        defer { client.shutdown() }
        let answer = try await client.ask(Endpoints.backup, body: BackupRequest(path: target))
        #expect(answer.done == !isConfined && place.exists(target) == !isConfined, "\(answer)")
        #expect(!isConfined || answer.message.contains("gave up all other access"), "\(answer)")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a file that the agent gave up is sent by the command itself, others by the agent`() async throws {
        let (place, agent) = try await Place.running()
        let other = try TemporaryDirectory()
        let outside = try other.write(bytes(1000), to: "b.bin")
        try await place.deliver("a.bin", bytes(500), by: agent)
        let environment = ["XDG_STATE_HOME": place.folder.path.appending("own").string]
        try await place.inlet(
            "send", outside.string, environment: environment, code: 0,
            errors: "this command itself sends the files elsewhere")
        #expect(agent.lines("job.started") { $0.isAbout("b.bin") }.isEmpty)
        let names = try FileManager.default.subpathsOfDirectory(atPath: place.library.string)
        #expect(names.contains { $0.hasSuffix("b.bin") }, "\(names)")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a reload that needs more asks for a restart, and one that does not is taken`() async throws {
        let place = try Place()
        // The folder of the configuration itself is kept for reading.
        let elsewhere = try TemporaryDirectory()
        let other = elsewhere.path
        let agent = try await place.run()
        let good = String(decoding: try place.content(place.configuration), as: UTF8.self)
        for (old, new, told) in [
            ("- path: drop", "- path: \(other)", other.string),
            ("to: store\n", "to: store\n    on_success: delete\n", place.drop.string),
            ("watch:", "notify: [{ name: ops, exec: [/bin/true] }]\nwatch:", "'/bin/true'"),
        ] {
            try place.configure(text: good.replacing(old, with: new))
            try await place.inlet("reload", code: 78, errors: told, "restart it")
        }
        try place.folder.makeDirectory("drop/sub")
        try place.configure(text: good.replacing("- path: drop", with: "- path: drop/sub"))
        try await place.inlet("reload", code: 0)
        try await place.deliver("sub/a.bin", bytes(10), by: agent)
        #expect(try await agent.stop() == .code(0))
    }

    /// Its helper, which was there before, starts the reader.
    @Test func `a reload that asks for media types first is taken`() async throws {
        let (place, agent) = try await Place.running()
        try place.configure(
            replacing: "to: store", with: "to: store\n    validate: { media_type: \"video/*\" }")
        try await place.inlet("reload", code: 0)
        try place.put("clip.mp4", Data("MZ".utf8) + Data(count: 126))
        try await agent.line("file.rejected") { $0.isAbout("clip.mp4") }
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a folder that comes after the start is watched`() async throws {
        let place = try Place()
        try FileManager.default.removeItem(atPath: place.drop.string)
        let agent = try await place.run()
        #expect(try await places(place).readable.contains(place.folder.path.string))
        try place.folder.makeDirectory("drop")
        try await place.deliver("a.bin", bytes(10), by: agent)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `check warns of a program that the agent could change, and of none in its own folder`() async throws {
        for folder in ["library", "programs"] {
            let place = try Place()
            let hook = try place.folder.write("#!/bin/sh\n".utf8, to: FilePath("\(folder)/hook"))
            #expect(chmod(hook.string, 0o755) == 0)
            try place.configure(
                replacing: "state_dir:", with: "notify: [{ name: ops, exec: [\(hook)], on: [delivered] }]\nstate_dir:")
            let text = try await place.inlet("check").output
            #expect(text.contains("hook lies where the agent may write") == (folder == "library"), "\(text)")
        }
    }

    @Test func `check says what is given up, and what keeps it from being so`() async throws {
        let place = try Place()
        let before = try await place.inlet("check", says: "an agent that starts is confined (version ")
        #expect(before.output.contains("system calls") == before.output.contains("confined (version"))
        if CallFilter.isAvailable {
            #expect(before.output.contains("gave up \(CallFilter.count) system calls"), "\(before.output)")
        }
        let agent = try await place.run()
        try await place.inlet("check", says: "the running agent is confined (version ")
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "- path: drop", with: "- path: /no-such-folder/drop")
        try await place.inlet("check", says: "not confined: /no-such-folder/drop: create it")
        try place.configure(replacing: "state_dir: state", with: "landlock: required\nstate_dir: state")
        try await place.inlet("check", code: 78)
        try await place.inlet("run", code: 78, errors: "landlock: required")
    }
}

/// A field of `/proc/PID/status`.
private func field(_ name: String, of process: Int32) throws -> String? { try field(name, of: "\(process)") }

private func field(_ name: String, of process: String) throws -> String? {
    let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    return text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
}

/// The process that starts programs for a confined agent.
@Suite(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
struct ProcessHostTests {
    private func host(of agent: InletProcess) throws -> Int32 { try #require(try agent.children.first) }

    private func isThere(_ process: Int32) -> Bool { FileManager.default.fileExists(atPath: "/proc/\(process)") }

    private func place(_ script: String) throws -> Place {
        return try Place(top: ["notify: [{ name: ops, exec: [/bin/sh, -c, \"\(script)\"], on: [delivered] }]"])
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `it has none of the agent's secrets, and its programs none of its capabilities`() async throws {
        let place = try place("grep CapEff /proc/self/status > $HOME/caps; env > $HOME/env")
        try Nobody.own(place.folder.path)
        let lease = ["--inh-caps=+lease", "--ambient-caps=+lease"]
        let agent = try await place.run(
            environment: ["HOME": place.folder.path.string, "CANARY": "sk-canary", "LD_DEBUG_OUTPUT": "x"],
            launcher: Nobody.launcher + lease)
        #expect(try field("CapEff", of: agent.id) == "0000000010000000")
        let host = try host(of: agent)
        #expect(try field("CapAmb", of: host) == "0000000000000000")
        // Its environment is for root to read, who this test is.
        let environment = try String(contentsOfFile: "/proc/\(host)/environ", encoding: .utf8)
        #expect(environment.contains("HOME=") && !environment.contains("CANARY"), "\(environment)")
        try place.put("a.bin", bytes(10))
        try Nobody.own(place.drop)
        try await agent.wait("the program has run") { place.exists(place.folder.path.appending("env")) }
        let caps = String(decoding: try place.content(place.folder.path.appending("caps")), as: UTF8.self)
        #expect(caps.hasSuffix("0000000000000000\n"), "\(caps)")
        #expect(try await agent.stop() == .code(0))
        try await eventually("it ends with the agent") { !isThere(host) }
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `it maps less than 2 MiB, also once it has looked at all processes`() async throws {
        let place = try Place()
        let agent = try await place.run(launcher: [Nobody.launcher[0], "--bounding-set=-lease", "--inh-caps=-lease"])
        let draft = try place.folder.write(bytes(10), to: "draft")
        // Of another user: the kernel grants no lease.
        try Nobody.own(draft)
        #expect(rename(draft.string, place.drop.appending("a.bin").string) == 0)
        try await agent.line("job.finished") { $0.isAbout("a.bin") }
        let host = try host(of: agent)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(host)/exe").hasSuffix("/inlet-host"))
        let memory = try String(contentsOfFile: "/proc/\(host)/smaps_rollup", encoding: .utf8)
        let line = try #require(memory.split(separator: "\n").first { $0.hasPrefix("Pss:") })
        #expect(try #require(Int(line.filter(\.isNumber))) < 2048, "\(memory)")
        #expect(try await agent.stop() == .code(0))
    }

    /// In memory: an overlay's leases do not tell all, there the helper looks at every file.
    @Test func `an agent that is not confined has none while it has nothing to ask`() async throws {
        let place = Place(in: try TemporaryDirectory.inMemory())
        for folder in ["drop", "library"] as [FilePath] { try place.folder.makeDirectory(folder) }
        var config = ConfigText()
        config.top += [
            "landlock: off",
            "notify: [{ name: ops, exec: [/bin/sh, -c, \"cat > $HOME/note\"], on: [rejected] }]",
        ]
        config.route += ["validate: { max_size: 1KiB }"]
        try place.configure(config)
        let agent = try await place.run(environment: ["HOME": place.folder.path.string])
        try await place.deliver("a.bin", bytes(10), by: agent)
        #expect(try agent.children == [])
        try place.put("large.bin", bytes(2000))
        try await agent.wait("the program has run") { place.exists(place.folder.path.appending("note")) }
        // It comes at the first question, and stays.
        try await agent.wait("there is a helper") { (try? agent.children.count) == 1 }
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `its programs end with an agent that is killed`() async throws {
        let place = try place("echo $$ > $HOME/pid; exec sleep 600")
        let agent = try await place.run(environment: ["HOME": place.folder.path.string])
        let host = try host(of: agent)
        try place.put("a.bin", bytes(10))
        var program: Int32?
        try await agent.wait("the program runs") {
            program = (try? place.content(place.folder.path.appending("pid")))
                .flatMap { Int32(String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)) }
            return program != nil
        }
        try await agent.kill()
        let left = try #require(program)
        try await eventually("both have ended") { !isThere(host) && !isThere(left) }
    }

    /// Each question of whether a writer has a file costs a descriptor while it lasts.
    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `no descriptor is left behind by questions that nobody answers any more`() async throws {
        let place = try Place()
        let launcher = [Nobody.launcher[0], "--bounding-set=-lease", "--inh-caps=-lease"]
        let agent = try await place.run(launcher: launcher)
        try await place.deliver("first.bin", bytes(10), by: agent)
        #expect(kill(try host(of: agent), SIGKILL) == 0)
        try await agent.line("agent.helper_lost")
        func open() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/\(agent.id)/fd").count }
        let before = try open()
        let number = 200
        for file in 0..<number {
            let draft = try place.folder.write(bytes(10), to: "draft")
            try Nobody.own(draft)
            #expect(rename(draft.string, place.drop.appending("\(file).bin").string) == 0)
        }
        try await agent.line("job.finished", number: number + 1)
        #expect(try open() < before + number / 2)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `files are delivered without it, and what it is missing for is said`() async throws {
        let place = try place("cat > $HOME/note")
        let agent = try await place.run(environment: ["HOME": place.folder.path.string])
        #expect(kill(try host(of: agent), SIGKILL) == 0)
        try await agent.line("agent.helper_lost") { $0["level"] == "error" }
        try await place.deliver("a.bin", bytes(10), by: agent)
        try await agent.line("notification.failed") { $0["reason"]?.contains("restart the agent") ?? false }
        #expect(try await agent.stop() == .code(0))
    }
}

/// What a program of `derive:` can change, which a hostile picture may have taken over.
@Suite(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
struct DeriveConfinementTests {
    /// Root may write everywhere: it is not a folder's mode that forbids it.
    @Test(arguments: [true, false])
    func `it could write anywhere, and that of a confined agent writes in the folder of its run`(
        _ isConfined: Bool
    ) async throws {
        var config = ConfigText()
        let shared = try TemporaryDirectory.inMemory()
        let script =
            "cd HERE; for place in library SHARED; do echo taken over > $place/note; done; "
            + "echo x > $TMPDIR/own && (cat $TMPDIR/own {in}; env; grep Seccomp: /proc/self/status) > {out}"
        config.top += ["landlock: \(isConfined ? "required" : "off")"]
        config.route += [
            "derive: [{ name: copy, command: [/bin/sh, -c, \"\(script)\"], suffix: .copy }]"
        ]
        let place = try Place(config)
        try place.configure(replacing: "HERE", with: place.folder.path.string)
        try place.configure(replacing: "SHARED", with: shared.path.string)
        let agent = try await place.run(environment: ["CANARY": "sk-canary"])
        try place.put("clip.bin", Data("content".utf8))
        try await agent.line("job.finished", number: 2)
        let stored = Place.files(below: place.library).filter { $0.key.hasSuffix(".copy") }
        let text = String(decoding: try #require(stored.values.first), as: UTF8.self)
        #expect(stored.count == 1 && text.hasPrefix("x\ncontent") && text.contains("TMPDIR="))
        #expect(!CallFilter.isAvailable || text.contains("Seccomp:\t\(isConfined ? 2 : 0)"), "\(text)")
        // Nothing of Inlet's own environment.
        #expect(!text.contains("CANARY"))
        for folder in [place.library, shared.path] {
            #expect(place.exists(folder.appending("note")) == !isConfined, "\(folder)")
        }
        #expect(agent.lines("file.not_derived").isEmpty)
        #expect(try await agent.stop() == .code(0))
    }
}

/// Routes that are made milder between two runs of a confined agent, while a file is under way by what they said before.
@Suite(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
struct MilderRouteTests {
    private func mayWriteTheDrop(_ place: Place) async throws -> Bool {
        let report = try await place.inlet("status", "--json").object()["confinement"] as? [String: Any]
        return (report?["writable"] as? [String] ?? []).contains(place.drop.string)
    }

    @Test func `it is archived as was meant, and then the folder is only read`() async throws {
        let place = try Place(route: ["on_success: archive"])
        try await place.inlet("pause", "store", code: 0)
        try place.put("a.bin", bytes(1000))
        try await place.runUntil("job.admitted") { $0.isAbout("a.bin") }

        try place.configure(replacing: "on_success: archive", with: "on_success: keep")
        let second = try await place.run()
        #expect(try await mayWriteTheDrop(place))
        try await place.inlet("resume", "store", code: 0)
        try await second.line("job.finished") { $0.isAbout("a.bin") && $0["state"] == "delivered" }
        #expect(try place.content(place.drop.pushing(".inlet/done/a.bin")) == bytes(1000))
        try await place.deliver("b.bin", bytes(500), by: second)
        #expect(place.exists(place.drop.appending("b.bin")))
        #expect(try await second.stop() == .code(0))

        // The third notes that nothing is owed any more, the fourth goes by that.
        for mayWrite in [true, false] {
            let agent = try await place.run()
            #expect(try await mayWriteTheDrop(place) == mayWrite)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
