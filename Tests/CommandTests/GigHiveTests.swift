import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built command against a GigHive server: what arrives, what is shown of it, and taking it back.
@Suite(.serialized) struct GigHiveTests {
    private static let chunk = 5 << 20

    @Test func `a dropped clip arrives with its fields, and can be taken back by its job's number`() async throws {
        let fields = ["with: { org_name: \"{folder[1]}\", event_date: \"2026-11-21\", rating: \"7\" }"]
        try await withGigHive(route: fields) { place, sandbox in
            let agent = try await place.run()
            try place.put("The Band/song.mp4", bytes(100_000))
            try await agent.line("job.finished")
            let entry = try #require(sandbox.assets().first?.entries.first)
            #expect(entry.label == "song" && entry.orgName == "The Band" && entry.rating == 7)
            #expect(entry.eventDate == "2026-11-21" && entry.eventType == "band")
            let receipts = try await place.inlet("receipts")
            let receipt = try #require(try receipts.objects().first)
            let delivery = try #require((receipt["deliveries"] as? [[String: Any]])?.first)
            let details = try #require(delivery["details"] as? [String: String])
            let asset = try #require(sandbox.assets().first)
            #expect(details["asset_id"] == String(asset.id) && details["status"] == "201")
            #expect(details["answer"]?.contains(asset.sha256.hex) == true)
            #expect(delivery["digest"] as? String == asset.sha256.description)
            let shown = try await place.inlet("queue", "show", "1", says: "asset_id")
            for text in [receipts.output, shown.output, agent.output, agent.errors] {
                #expect(!text.contains(gigHivePassword))
                #expect(text.firstRange(of: /delete_token\W+[0-9a-f]{8}/) == nil)
            }
            let deleted = try await place.inlet("gighive", "delete", "1", code: 0)
            #expect(deleted.output.contains("asset \(asset.id) is deleted"))
            #expect(sandbox.assets() == [])
            try await place.inlet("gighive", "delete", "1", code: 1, errors: "no token")
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `without an agent the journal has the token`() async throws {
        try await withGigHive("transport: tus") { place, sandbox in
            try place.put("film.mov", bytes(Self.chunk + 1))
            try await place.runUntil("job.finished")
            #expect(sandbox.assets().first?.size == Int64(Self.chunk + 1))
            try await place.inlet("gighive", "delete", "1", code: 0)
            #expect(sandbox.assets() == [])
            try await place.inlet("gighive", "delete", "99", code: 1, errors: "there is no job 99")
        }
    }

    @Test func `an upload that was killed sends at most one chunk again`() async throws {
        try await withGigHive("transport: tus") { place, sandbox in
            let content = bytes(3 * Self.chunk + 1)
            let file = try place.folder.write(content, to: "film.mov")
            let killed = try place.start("send", file.string, environment: ["INLET_FAILPOINT": "partUploaded:2"])
            #expect(try await killed.ending() == .signal(SIGKILL))
            try await place.inlet("send", file.string, code: 0)
            let traffic = sandbox.traffic
            #expect(traffic.counts[.tusCreate] == 1 && (traffic.counts[.tusHead] ?? 0) >= 1)
            #expect(traffic.bytesReceived <= Int64(content.count + Self.chunk + 4096))
            #expect(try place.content(#require(sandbox.assets().first).path) == content)
        }
    }

    @Test func `a killed moment before filing loses nothing and files once`() async throws {
        for failpoint in ["uploadCreated", "beforeComplete", "afterComplete"] {
            try await withGigHive("transport: tus") { place, sandbox in
                let content = bytes(Self.chunk + 1)
                try place.put("film.mov", content)
                try await place.die(at: failpoint)
                let agent = try await place.run()
                try await agent.line("job.finished")
                #expect(try await agent.stop() == .code(0), "\(failpoint)")
                #expect(sandbox.assets().count == 1 && sandbox.openUploads() == [])
                #expect(sandbox.traffic.counts[.tusPatch] == 2, "\(failpoint)")
                // The token outlives the kill: the answer was in the journal before anything else.
                try await place.inlet("gighive", "delete", "1", code: 0)
            }
        }
    }

    @Test func `a form that is killed at any moment is filed once, and can be taken back where its answer came`()
        async throws
    {
        let lost = FaultReply.page(504, "Gateway Timeout")
        let moments: [(failpoint: String?, fault: FaultAction?)] = [
            (nil, .stall), ("beforeComplete", .replyAfterWork(lost)), ("afterComplete", nil),
        ]
        for (failpoint, fault) in moments {
            try await withGigHive("transport: multipart") { place, sandbox in
                let what = failpoint ?? "on its way"
                let content = bytes(Self.chunk + 1)
                if let fault { sandbox.faults.add(GigHiveFault(fault, at: .upload)) }
                try place.put("film.mov", content)
                let environment = failpoint.map { ["INLET_FAILPOINT": $0] } ?? [:]
                let killed = try place.start("run", environment: environment)
                if failpoint == nil {
                    try await eventually("the form is under way") { sandbox.traffic.counts[.upload] == 1 }
                    try await killed.kill()
                } else {
                    #expect(try await killed.ending() == .signal(SIGKILL), "\(what)")
                }
                let agent = try await place.run()
                try await agent.line("job.finished")
                #expect(try await agent.stop() == .code(0), "\(what)")
                #expect(sandbox.assets().map(\.entries.count) == [1], "\(what)")
                #expect(try place.content(#require(sandbox.assets().first).path) == content, "\(what)")
                // Of the one whose answer was lost the server gave its token away unheard.
                try await place.inlet("gighive", "delete", "1", code: failpoint == "beforeComplete" ? 1 : 0)
            }
        }
    }

    /// As the server's own `UPLOAD_MAX_BYTES`, in digits alone.
    @Test func `a clip over the configured limit is refused with nothing sent, in sizes that people read`() async throws
    {
        try await withGigHive("max_upload_bytes: 2097152") { place, sandbox in
            sandbox.rules.maximumBytes = 2_097_152
            let large = try place.folder.write(bytes(3 << 20), to: "large.mov")
            let refused = try await place.inlet("send", large.string)
            let said = refused.output + refused.errors
            #expect(refused.ending == .code(1), "\(said)")
            #expect(said.contains("is 3 MiB, over the limit of 2 MiB (max_upload_bytes); nothing was sent"), "\(said)")
            #expect(sandbox.traffic.bytesReceived == 0 && sandbox.assets() == [])
            let fitting = try place.folder.write(bytes(2 << 20), to: "fitting.mov")
            try await place.inlet("send", fitting.string, code: 0)
            #expect(sandbox.assets().map(\.size) == [2_097_152])
            try place.configure(replacing: "2097152", with: "lots")
            try await place.inlet("check", code: 78, errors: "'lots' is not a size")
        }
    }

    @Test func `check logs in, and a test object comes and goes`() async throws {
        try await withGigHive { place, sandbox in
            let checked = try await place.inlet(
                "check", "--upload", says: "takes these credentials", "the test object was removed")
            #expect(checked.ending != .code(69) && checked.ending != .code(78), "\(checked.output)")
            #expect(sandbox.assets() == [])
            try place.configure(replacing: gigHivePassword, with: "wrong-canary")
            let refused = try await place.inlet("check", code: 69, says: "credentials")
            #expect(!refused.output.contains("wrong-canary"))
        }
    }

    @Test func `an unknown field is refused with its line`() async throws {
        try await withGigHive(route: ["with: { lable: x }"]) { place, _ in
            try await place.inlet("check", code: 78, errors: "unknown field 'lable' in with; did you mean 'label'?")
        }
    }
}
