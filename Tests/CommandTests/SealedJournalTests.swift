import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What services hand out to us alone is in no journal and in no copy of one, and does its work all the same.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SealedJournalTests {
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

    @Test func `the URLs of an upload that was killed, which goes on with them`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            try place.put("film.bin", bytes(11 << 20))
            let agent = try place.start("run", environment: ["INLET_FAILPOINT": "partUploaded"])
            #expect(try await agent.ending() == .signal(SIGKILL))
            let open = sandbox.openUploads()
            #expect(open.count == 1)
            let copies = try await copies(place)
            // What makes such a URL one, and what is noted beside it.
            expectNone(of: ["X-Amz-", "Signature=", "partNumber="], in: copies)
            #expect(copies.values.contains { $0.range(of: Data((open.first ?? "").utf8)) != nil })
            let next = try await place.run()
            try await next.line("job.finished")
            #expect(try await next.stop() == .code(0))
            #expect(sandbox.objects().map(\.key) == ["film.bin"] && sandbox.openUploads().isEmpty)
            expectNone(of: ["X-Amz-", "Signature="], in: try await self.copies(place))
        }
    }

    @Test func `an upload whose key is lost is dropped and begun anew`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            try place.put("film.bin", bytes(11 << 20))
            let agent = try place.start("run", environment: ["INLET_FAILPOINT": "partUploaded"])
            #expect(try await agent.ending() == .signal(SIGKILL))
            try FileManager.default.removeItem(atPath: place.state.appending("journal.key").string)
            let next = try await place.run()
            try await next.line("job.finished")
            #expect(try await next.stop() == .code(0))
            #expect(sandbox.objects().map(\.key) == ["film.bin"] && sandbox.openUploads().isEmpty)
        }
    }

    @Test func `the token that deletes a file at GigHive, which is deleted with it`() async throws {
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
            try await place.inlet("gighive", "delete", "1", code: 0)
            #expect(sandbox.assets() == [])
        }
    }

    @Test func `a token whose key is lost is as unknown as one that was never given`() async throws {
        try await withGigHive { place, sandbox in
            let agent = try await place.run()
            try place.put("song.mp4", bytes(100_000))
            try await agent.line("job.finished")
            #expect(try await agent.stop() == .code(0))
            try FileManager.default.removeItem(atPath: place.state.appending("journal.key").string)
            try await place.inlet("gighive", "delete", "1", code: 1, errors: "no token")
            #expect(sandbox.assets().count == 1)
        }
    }
}
