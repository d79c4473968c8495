import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A file that is renamed while its bytes leave, with a destination that looks whether it is still there.
@Suite struct RenameCommandTests {
    @Test func `a file that is renamed while it is sent begins anew under its new name, and leaves nothing of the old`()
        async throws
    {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            // Its first part arrives, the second one hangs.
            sandbox.faults.add(Fault(.stall, at: .part, part: 2, times: nil))
            let agent = try await place.run()
            let content = bytes(11 << 20)
            try place.put("one.mov", content)
            try await agent.wait("the second part") { sandbox.faults.injected(at: .part) == 1 }
            try #require(rename(place.drop.appending("one.mov").string, place.drop.appending("two.mov").string) == 0)
            try await agent.wait("the rename is seen, and waits") {
                try await place.inlet("status").output.contains("two.mov: waiting for its delivery: it was renamed")
            }
            #expect(agent.lines("job.admitted").count == 1)
            sandbox.faults.clear()
            try await agent.line("job.finished") { $0.isAbout("one.mov") && $0["state"] == "gone" }
            try await agent.line("job.finished") { $0.isAbout("two.mov") && $0["state"] == "delivered" }
            #expect(sandbox.objects().map(\.key) == ["two.mov"])
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
            try await agent.wait("the first upload is given up") { sandbox.openUploads().isEmpty }
            #expect(agent.lines("job.admitted").count == 2 && agent.lines("job.renamed").isEmpty)
            let balance = try await place.balance()
            #expect(balance["delivered"] == 1 && balance["gone"] == 1, "\(balance)")
            #expect(try await agent.stop() == .code(0))
        }
    }
}
