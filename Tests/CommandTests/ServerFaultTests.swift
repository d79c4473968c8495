import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What goes wrong at the other end, or under the agent's feet, and how each case ends.
@Suite(.serialized) struct ServerFaultTests {
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

    @Test(.enabled(if: Nobody.isAvailable), arguments: ["a file in its place", "a folder of somebody else"])
    func `an archive folder that cannot be used leaves the source, and says so`(_ obstacle: String) async throws {
        let place = try Place(route: ["on_success: archive"])
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
        try await place.deliver("public.txt", bytes(20), by: agent)
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
