import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What goes wrong at the other end, or under the agent's feet, and how each case ends.
@Suite(.serialized) struct ServerFaultTests {
    @Test func `files for a server that is not there wait without losing attempts, and go when it comes up`()
        async throws
    {
        let port = try FreePort.any()
        let place = try Place(.spiral(port))
        let agent = try await place.run()
        try place.put("a.bin", bytes(6 << 20))
        let down = try await agent.line("destination.down")
        #expect(down["destination"] == "store" && down["reason"]?.contains("no connection") ?? false, "\(down)")
        #expect(try await place.inlet("queue", "show", "1", "--json").deliveries().first?["attempts"] as? Int == 0)
        try await withSandbox(place.folder.path.appending("store"), port: port) { sandbox, _ in
            try await agent.line("destination.up")
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            #expect(sandbox.objects().map(\.versions) == [1])
            #expect(try await agent.stop() == .code(0))
        }
        #expect(agent.lines("destination.down").count == 1)
        #expect(try await place.inlet("queue", "show", "1", "--json").deliveries().first?["attempts"] as? Int == 1)
    }

    @Test(arguments: [FaultAction.status(500), .html, .garbage, .reset(afterBytes: 1000), .missingETag])
    func `a server that errs once is tried again until the file is there, once`(_ fault: FaultAction) async throws {
        try await withSpiral { place, sandbox in
            sandbox.faults.add(Fault(fault, at: .part))
            let agent = try await place.run()
            try place.put("a.bin", bytes(11 << 20))
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            #expect(sandbox.faults.injected == 1)
            #expect(sandbox.objects().map(\.versions) == [1])
            #expect(try place.content(#require(sandbox.objects().first).path) == bytes(11 << 20))
            try await agent.wait("no open upload") { sandbox.openUploads().isEmpty }
        }
    }

    @Test(arguments: [(413, SpiralOperation.create), (400, .complete)])
    func `a server that keeps refusing ends in failure, the file in quarantine with the reason`(
        _ status: Int, _ operation: SpiralOperation
    ) async throws {
        try await withSpiral(route: "on_failure: quarantine") { place, sandbox in
            let refusal = FaultReply(status, type: "application/json", body: #"{"error":"not this one"}"#)
            sandbox.faults.add(Fault(.reply(refusal), at: operation, times: nil))
            let agent = try await place.run()
            try place.put("sub/a.bin", bytes(6 << 20))
            try await agent.line("job.finished") { $0["state"] == "failed" }
            let failed = try #require(agent.lines("job.failed").first)
            #expect(failed["reason"]?.isEmpty == false && failed["code"]?.isEmpty == false)
            let quarantined = place.drop.appending(".inlet").appending("failed").appending("sub").appending("a.bin")
            #expect(try place.content(quarantined) == bytes(6 << 20))
            let note = try JSONSerialization.jsonObject(
                with: place.content(FilePath(quarantined.string + ".reason.json")))
            #expect(((note as? [String: Any])?["reason"] as? String) == failed["reason"])
            #expect(!place.exists(place.drop.appending("sub").appending("a.bin")))
            #expect(sandbox.objects().isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `a file that changes while it is sent is superseded, and its new content is delivered`(_ grows: Bool)
        async throws
    {
        try await withSpiral("parallel_parts: 1", route: "on_success: delete") { place, sandbox in
            sandbox.faults.add(Fault(.slowRead(bytesPerSecond: 10 << 20), at: .part, times: 2))
            let agent = try await place.run()
            let content = bytes(16 << 20)
            try place.put("a.bin", content)
            try await agent.wait("the second part") { sandbox.traffic.counts[.part] ?? 0 >= 2 }
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: place.drop.appending("a.bin").string))
            if grows {
                try file.seekToEnd()
                try file.write(contentsOf: bytes(1000))
            } else {
                try file.truncate(atOffset: 7 << 20)
            }
            try file.close()
            try await agent.line("job.failed") { $0["state"] == "superseded" }
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            let wanted = grows ? content + bytes(1000) : content.prefix(7 << 20)
            #expect(sandbox.objects().count == 1)
            #expect(try place.content(#require(sandbox.objects().first).path) == wanted)
            try await agent.wait("no open upload") { sandbox.openUploads().isEmpty }
            #expect(!place.exists(place.drop.appending("a.bin")))
        }
    }

    @Test(arguments: [true, false])
    func `a source is open while it is sent, and closed once it has arrived or failed`(_ arrives: Bool) async throws {
        try await withSpiral { place, sandbox in
            let refusal = FaultReply(400, type: "application/json", body: #"{"error":"not this one"}"#)
            if !arrives { sandbox.faults.add(Fault(.reply(refusal), at: .complete, times: nil)) }
            sandbox.faults.add(Fault(.slowRead(bytesPerSecond: 4 << 20), at: .part, times: nil))
            let agent = try await place.run()
            try place.put("a.bin", bytes(6 << 20))
            let source = place.drop.appending("a.bin")
            try await agent.wait("its source is open") { try agent.hasOpen(source) }
            try await agent.line("job.finished") { $0["state"] == (arrives ? "delivered" : "failed") }
            try await agent.wait("its source is closed") { try !agent.hasOpen(source) }
            #expect(place.exists(source) && sandbox.objects().count == (arrives ? 1 : 0))
        }
    }

    @Test func `a file that is removed while it waits ends as gone`() async throws {
        let place = try Place()
        #expect(try await place.inlet("pause").ending == .code(0))
        let agent = try await place.run()
        try place.put("a.txt", bytes(10))
        try await agent.line("job.admitted")
        try FileManager.default.removeItem(atPath: place.drop.appending("a.txt").string)
        #expect(try await place.inlet("resume").ending == .code(0))
        try await agent.line("job.finished") { $0["state"] == "gone" }
        #expect(try await place.balance()["gone"] == 1)
    }

    @Test(.enabled(if: Nobody.isAvailable), arguments: ["a file in its place", "a folder of somebody else"])
    func `an archive folder that cannot be used leaves the source, and says so`(_ obstacle: String) async throws {
        var config = ConfigText()
        config.route.append("on_success: archive")
        let place = try Place(config)
        let archive = place.drop.appending(".inlet").appending("done")
        if obstacle == "a file in its place" {
            try place.folder.write(bytes(1), to: "drop/.inlet")
        } else {
            try place.folder.makeDirectory("drop/.inlet/done")
        }
        try Nobody.own(place.folder.path)
        if obstacle != "a file in its place" { #expect(chown(archive.string, 0, 0) == 0) }
        let agent = try await place.run(launcher: Nobody.launcher)
        try place.put("a.txt", bytes(10))
        try Nobody.own(place.drop.appending("a.txt"))
        let failed = try await agent.line("job.disposition_failed")
        #expect(failed["reason"]?.contains(".inlet") ?? false, "\(failed)")
        #expect(try await agent.stop() == .code(0))
        let names = try FileManager.default.contentsOfDirectory(atPath: place.drop.string)
        #expect(names.sorted() == [".inlet", "a.txt"], "the source has its own name while it waits: \(names)")
        #expect(try place.content(place.library.appending("a.txt")) == bytes(10))
    }

    @Test(.enabled(if: Nobody.isAvailable))
    func `a file that its user may not read yet waits and is said while others go on, and is sent once he may`()
        async throws
    {
        let place = try Place()
        try Nobody.own(place.folder.path)
        let agent = try await place.run(launcher: Nobody.launcher)
        try place.put("private.txt", bytes(10))
        let source = place.drop.appending("private.txt")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: source.string)
        try place.put("public.txt", bytes(20))
        try await agent.line("job.finished") { $0.isAbout("public.txt") && $0["state"] == "delivered" }
        try await agent.wait("status says so") {
            let said = try await place.inlet("status").output
            return said.contains("may not be read by Inlet") && said.contains("private.txt")
        }
        #expect(!place.exists(place.library.appending("private.txt")))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: source.string)
        let sent = try await agent.line("job.finished") { $0.isAbout("private.txt") }
        #expect(sent["state"] == "delivered")
        try await agent.wait("its source is closed") { try !agent.hasOpen(source) }
    }
}

extension InletProcess {
    /// Whether one of its descriptors is of this file.
    func hasOpen(_ file: FilePath) throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/fd").contains { number in
            // One may be closed since it was listed.
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(id)/fd/\(number)")) == file.string
        }
    }
}

/// A user without rights, for tests that root runs.
enum Nobody {
    static let launcher = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    static var isAvailable: Bool { getuid() == 0 && FileManager.default.isExecutableFile(atPath: launcher[0]) }

    static func own(_ path: FilePath) throws { try Tool.run("/bin/chown", "-R", "65534:65534", path.string) }
}

extension Place.Finished {
    /// The deliveries of a job's report.
    func deliveries() throws -> [[String: Any]] { try object()["deliveries"] as? [[String: Any]] ?? [] }
}
