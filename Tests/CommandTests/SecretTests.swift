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
