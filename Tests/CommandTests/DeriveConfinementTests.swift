import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

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
