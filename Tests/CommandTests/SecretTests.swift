import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Secrets stay where they were written: nothing that Inlet prints or keeps holds them.
@Suite(.serialized) struct SecretTests {
    enum Source: String, Sendable {
        case file = "${file:canary.txt}"
        case literal = "sandbox-key-93f1"
    }

    @Test(arguments: [Source.file, .literal])
    func `an API key is in no output, no log, no file of ours and no command line`(_ source: Source) async throws {
        try await withSpiral { place, sandbox in
            try place.configure(replacing: ConfigText.apiKey, with: source.rawValue)
            try place.folder.write(Data("\(ConfigText.apiKey)\n".utf8), to: "canary.txt")
            sandbox.faults.add(
                Fault(.status(500), at: .create), Fault(.html, at: .part), Fault(.garbage, at: .complete))
            let agent = try await place.run()
            try place.put("small.txt", bytes(100))
            try place.put("large.bin", bytes(6 << 20))
            try await agent.line("job.finished", number: 2)
            #expect(sandbox.objects().count == 2)
            let commandLine = try place.content(FilePath("/proc/\(agent.id)/cmdline"))
            var written = [String(decoding: commandLine, as: UTF8.self)]
            for command in ["status", "check", "receipts"] {
                let result = try await place.inlet(command)
                written += [result.output, result.errors]
            }
            for arguments in [["config", "show"], ["queue", "list", "--json"], ["queue", "show", "2"]] {
                let result = try await place.inlet(arguments)
                written += [result.output, result.errors]
            }
            try await agent.stop()
            written += [agent.output, agent.errors]
            #expect(written.allSatisfy { !$0.contains(ConfigText.apiKey) })
            #expect(written.allSatisfy { !$0.contains("X-Amz-Signature") })
            for (file, content) in Place.files(below: place.state) {
                #expect(content.range(of: Data(ConfigText.apiKey.utf8)) == nil, "\(file)")
            }
        }
    }

    @Test func `what waits goes untried while its key is refused at the start, and goes with a new key`() async throws {
        try await withSpiral { place, sandbox in
            try place.configure(replacing: ConfigText.apiKey, with: Source.file.rawValue)
            try place.folder.write(Data(ConfigText.apiKey.utf8), to: "canary.txt")
            try await place.inlet("pause", "store", code: 0)
            let first = try await place.run()
            for name in ["a.txt", "b.txt"] as [FilePath] { try place.put(name, bytes(10)) }
            try await first.line("job.admitted", number: 2)
            #expect(try await first.stop() == .code(0))
            try await place.inlet("resume", "store", code: 0)
            try place.folder.write(Data("wrong-canary-0042".utf8), to: "canary.txt")
            let agent = try await place.run()
            try await agent.line("destination.down")
            let status = try await place.inlet("status", "--json").object()
            let store = try #require((status["destinations"] as? [[String: Any]])?.first)
            #expect(store["state"] as? String == "credentials refused" && store["waiting"] as? Int == 2)
            let said = try await place.inlet("status").output
            #expect(said.contains("store refuses its credentials"), "\(said)")
            let jobs = try await place.inlet("queue", "list", "--json").objects()
            let deliveries = jobs.flatMap { $0["deliveries"] as? [[String: Any]] ?? [] }
            #expect(deliveries.map { $0["attempts"] as? Int } == [0, 0])
            #expect(agent.lines("job.started").isEmpty && sandbox.objects().isEmpty)
            try place.folder.write(Data(ConfigText.apiKey.utf8), to: "canary.txt")
            try await agent.line("job.finished", number: 2) { $0["state"] == "delivered" }
            #expect(sandbox.objects().map(\.key) == ["a.txt", "b.txt"])
        }
    }
}

/// A credential that stands where an address belongs.
@Suite(.serialized) struct WrongKeyTests {
    private static let canary = "Kanari3nVogelKey77"

    private static let keys = [
        "type: r2, api: %, api_key: none", "type: r2, api: \"https://127.0.0.1:1\", api_key: none, public_url: %",
        "type: s3, endpoint: %, bucket: b, access_key: a, secret_key: none",
        "type: s3, endpoint: \"https://127.0.0.1:1\", bucket: b, access_key: a, secret_key: none, public_url: %",
        "type: s3, region: %, bucket: b, access_key: a, secret_key: none",
        "type: gighive, url: %, user: me, password: none",
        "type: vopi, url: %, results: p, auth: { api_key: none }",
        "type: vopi, url: \"https://127.0.0.1:1\", callback_url: %, results: p, auth: { api_key: none }",
        "type: roboscope, url: %, storage: store",
    ]

    /// As it came, and what people put around it.
    private static let values = [
        "${env:X}", "http://${env:X}/", "ftp://${env:X}", "https://u:${env:X}@h.example", "${env:X} ",
    ]

    private static func shows(_ text: String) -> Bool { text.lowercased().contains(canary.lowercased().prefix(8)) }

    @Test(arguments: keys)
    func `it is in no error of the start`(_ key: String) async throws {
        for value in Self.values {
            let place = try Place(destination: key.replacing("%", with: "\"\(value)\""))
            let result = try await place.inlet("check", environment: ["X": Self.canary])
            // Some of them are the name of a host, and cannot be told from one.
            if result.ending == .code(78) { #expect(result.errors.contains("inlet.yaml:"), "\(result.errors)") }
            if result.ending == .code(78) { #expect(!Self.shows(result.errors + result.output), "\(result.errors)") }
            #expect(value != "${env:X}" || result.ending == .code(78), "\(result)")
        }
    }

    @Test func `it is in no answer to a reload, and in no line of the log`() async throws {
        let place = try Place()
        let good = String(decoding: try place.content(place.configuration), as: UTF8.self)
        let agent = try await place.run(environment: ["X": Self.canary])
        for key in Self.keys {
            let text = key.replacing("%", with: "\"${env:X}\"")
            try place.configure(text: good.replacing("type: folder, path: library", with: text))
            let refused = try await place.inlet("reload", environment: ["X": Self.canary], code: 78)
            #expect(!Self.shows(refused.errors + refused.output), "\(refused)")
        }
        try await agent.stop()
        #expect(!Self.shows(agent.errors + agent.output))
    }
}

/// What services hand out to us alone is in no journal and in no copy of one, and does its work all the same.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SealedJournalTests {
    /// The journal with its log, and a backup of it.
    private func copies(_ place: Place) async throws -> [String: Data] {
        let backup = place.folder.path.appending("backup.sqlite")
        try await place.inlet("queue", "backup", backup.string, code: 0)
        var copies = ["backup": try place.content(backup)]
        for (name, content) in Place.files(below: place.state) where name.hasPrefix("journal.sqlite") {
            copies[name] = content
        }
        #expect(copies.keys.contains("journal.sqlite"))
        let key = try place.content(place.state.appending("journal.key"))
        #expect(key.count == 32 && copies.values.allSatisfy { $0.range(of: key) == nil })
        return copies
    }

    private func expectNone(of words: [String], in copies: [String: Data]) {
        for (name, content) in copies {
            for word in words { #expect(content.range(of: Data(word.utf8)) == nil, "\(word) in \(name)") }
        }
    }

    @Test(arguments: [false, true])
    func `the URLs of an upload that was killed, which goes on with them, or begins anew where their key is lost`(
        _ isKeyLost: Bool
    ) async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            try place.put("film.bin", bytes(11 << 20))
            try await place.die(at: "partUploaded")
            let open = sandbox.openUploads()
            #expect(open.count == 1)
            let copies = try await copies(place)
            // What makes such a URL one, and what is noted beside it.
            expectNone(of: ["X-Amz-", "Signature=", "partNumber="], in: copies)
            #expect(copies.values.contains { $0.range(of: Data((open.first ?? "").utf8)) != nil })
            if isKeyLost {
                try FileManager.default.removeItem(atPath: place.state.appending("journal.key").string)
            }
            try await place.runUntil("job.finished")
            #expect(sandbox.objects().map(\.key) == ["film.bin"] && sandbox.openUploads().isEmpty)
            expectNone(of: ["X-Amz-", "Signature="], in: try await self.copies(place))
        }
    }

    @Test(arguments: [false, true])
    func `the token that deletes a file at GigHive, which is deleted with it, unless the token's key is lost`(
        _ isKeyLost: Bool
    ) async throws {
        try await withGigHive { place, sandbox in
            let agent = try await place.run()
            try place.put("song.mp4", bytes(100_000))
            try await agent.line("job.finished")
            for (name, content) in try await copies(place) {
                let text = String(decoding: content, as: UTF8.self)
                #expect(
                    text.firstRange(of: /(?:deleteToken|delete_token|status_?[nN]once)\W+[0-9a-f]{8}/) == nil, "\(name)"
                )
            }
            #expect(try await copies(place)["backup"]?.range(of: Data("delete_token".utf8)) != nil)
            #expect(try await agent.stop() == .code(0))
            if isKeyLost {
                try FileManager.default.removeItem(atPath: place.state.appending("journal.key").string)
                try await place.inlet("gighive", "delete", "1", code: 1, errors: "no token")
            } else {
                try await place.inlet("gighive", "delete", "1", code: 0)
            }
            #expect(sandbox.assets().count == (isKeyLost ? 1 : 0))
        }
    }
}

/// Secrets are in the agent's memory, and stay there.
@Suite struct MemoryTests {
    private static let canary = "sandbox-key-93f1"

    private static func readAsNobody(_ path: String) throws {
        let setpriv = Nobody.launcher
        try Tool.run(setpriv[0], setpriv[1], setpriv[2], setpriv[3], "/usr/bin/head", "-c", "0", path)
    }

    private static func limit(_ process: InletProcess) throws -> [Substring] {
        let limits = try String(contentsOfFile: "/proc/\(process.id)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        return line.dropFirst("Max core file size".count).split(separator: " ").prefix(2).map { $0 }
    }

    @Test func `no command may leave a core dump`() async throws {
        let (place, agent) = try await Place.running()
        let log = try place.folder.write(Data("no log line\n".utf8), to: "some.log")
        let tail = try place.start("tail", "--file", log.string)
        try await tail.wait("it has begun") { !tail.output.isEmpty }
        for process in [agent, tail] { #expect(try Self.limit(process) == ["0", "0"]) }
        try await agent.stop()
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `its memory is closed to programs of its own user, and it works all the same`() async throws {
        let place = try Place()
        try Nobody.own(place.folder.path)
        let agent = try await place.run(launcher: Nobody.launcher)
        try place.put("a.txt", bytes(100))
        try Nobody.own(place.drop)
        try await agent.line("job.finished") { $0["state"] == "delivered" }
        for name in ["environ", "maps", "mem"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: "/proc/\(agent.id)/\(name)")
            #expect(attributes[.ownerAccountID] as? Int == 0, "\(name)")
        }
        let status = try String(contentsOfFile: "/proc/\(agent.id)/status", encoding: .utf8)
        #expect(status.contains("Uid:\t65534\t65534"))
        try Self.readAsNobody("/proc/self/environ")
        #expect(throws: InletProcess.Unexpected.self) { try Self.readAsNobody("/proc/\(agent.id)/environ") }
        try await agent.stop()
    }

    @Test func `a crash leaves no core and no secret behind`() async throws {
        try await withSpiral { place, _ in
            let agent = try await place.run()
            agent.signal(SIGABRT)
            #expect(try await agent.ending() == .signal(SIGABRT))
            #expect(!(agent.output + agent.errors).contains(Self.canary))
            #expect(!agent.errors.contains("Registers:"))
            let names = try FileManager.default.subpathsOfDirectory(atPath: place.folder.path.string)
            #expect(names.allSatisfy { !$0.split(separator: "/").contains { $0.hasPrefix("core") } }, "\(names)")
        }
    }
}
