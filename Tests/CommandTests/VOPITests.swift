import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built command against a VOPI server: pictures of a video that was dropped, and what `inlet vopi` shows of them.
@Suite(.serialized) struct VOPITests {
    /// Drops `kettle.mp4` and waits for its end.
    private func deliver(_ place: Place) async throws -> InletProcess {
        let agent = try await place.run()
        try place.put("kettle.mp4", bytes(300_000))
        try await agent.line("job.finished")
        return agent
    }

    @Test func `a product's video becomes pictures in a folder of its job`() async throws {
        try await withVOPI(route: ["with: { commercial_versions: \"transparent,solid\", fps: \"2\" }"]) {
            place, sandbox in
            let agent = try await deliver(place)
            let job = try #require(sandbox.jobs().first)
            #expect(sandbox.jobs().count == 1 && sandbox.tally.puts == 1)
            let config: SandboxJSON = ["fps": 2, "commercialVersions": ["transparent", "solid"]]
            #expect(job.received == ["videoUrl": .string(job.videoURL), "config": config])
            let files = place.results(of: job.id)
            let made = try sandbox.made(of: job.id)
            #expect(made.count >= 5 && Set(files.values).isSuperset(of: made))
            #expect(files.count == made.count + 1)
            let product = try #require(files["product.json"])
            let object = try #require(try JSONSerialization.jsonObject(with: product) as? [String: Any])
            #expect(object["job"] as? String == job.id && object["complete"] as? Bool == true)
            #expect((object["platforms"] as? [String: Any])?.keys.sorted() == ["amazon", "ebay", "shopify"])
            try await place.inlet("queue", "show", "1", says: "job_id", job.id)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `people see jobs, pictures and frames, and fetch them again`() async throws {
        let kinds = VOPIJobConfig.versions.joined(separator: ",")
        try await withVOPI(route: ["with: { commercial_versions: \"\(kinds)\" }"]) { place, sandbox in
            let agent = try await deliver(place)
            let job = try #require(sandbox.jobs().first?.id)
            let listed = try await place.inlet("vopi", "jobs", "--status", "completed", "--json")
            #expect(try listed.objects().map { $0["id"] as? String } == [job], "\(listed.errors)")
            try await place.inlet("vopi", "jobs", "--status", "failed", says: "no such jobs")
            let table = try await place.inlet("vopi", "jobs").output
            #expect(table.contains("STATUS") && table.contains(job))
            try await place.inlet("vopi", "show", job, says: "completed", "variantsDiscovered")
            let product = try await place.inlet("vopi", "show", job, "--product")
            #expect(try product.object()["platforms"] != nil, "\(product.errors)")
            let frames = try await place.inlet("vopi", "frames", job, "--json")
            #expect(try frames.objects().first?["frameId"] as? String == "frame_00001", "\(frames.errors)")
            try await place.inlet("vopi", "frames", job, "--all", says: "front")
            let images = try await place.inlet("vopi", "images", job, "--json")
            let listedImages = try images.objects().map { $0.compactMapValues { $0 as? String } }
            #expect(Set(listedImages.map { $0["version"] }) == ["transparent", "solid", "real", "creative"])
            for image in listedImages {
                let file = "commercial/hero_\(image["version"] ?? "").png"
                #expect(image["frame"] == "hero" && image["url"]?.hasSuffix("/jobs/\(job)/\(file)") == true, "\(image)")
            }
            let again = try await place.inlet("vopi", "download", job, "-o", "elsewhere", code: 0)
            let fetched = Place.files(below: place.folder.path.appending("elsewhere").appending(job))
            #expect(try Set(fetched.values).isSuperset(of: sandbox.made(of: job)))
            #expect(again.output.contains("product.json"))
            sandbox.rules.droppedLinks = 1
            try await place.inlet(
                "vopi", "download", job, "-o", "partial", code: 1, errors: "did not return 1 of the files")
            #expect(try await agent.stop() == .code(0))
        }
    }

    /// A frame as the reference has it (`Frame`, `FrameObstructions`, `BackgroundRecommendations`), every field of it.
    private static let frame = """
        {"id":"row-7","jobId":"job-7","frameId":"frame_00042","timestamp":4.25,"s3Url":"https://s3.example/42.png",
        "productId":"kettle","variantId":"red","angleEstimate":"three-quarter","variantDescription":"A red kettle",
        "obstructions":{"has_obstruction":true,"obstruction_types":["hand","glare"],
        "obstruction_description":"a hand at the left","removable_by_ai":true},
        "backgroundRecommendations":{"solid_color":"#F5F0E8","solid_color_name":"cream",
        "real_life_setting":"a kitchen counter","creative_shot":"on a cloud of steam"},
        "createdAt":"2026-01-30T10:00:00.000Z"}
        """

    /// What the table says of it, field by field.
    private static let frameTexts = [
        "frame_00042", "4.25", "three-quarter", "kettle", "red", "A red kettle",
        "hand, glare: a hand at the left; removable",
        "solid: cream (#F5F0E8); real: a kitchen counter; creative: on a cloud of steam",
    ]

    @Test func `a frame is shown with its time, angle, obstructions and backgrounds`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let job = try sandbox.addJob(videoURL: "https://videos.example/kettle.mp4")
            let clear = #"{"frameId":"frame_00043","obstructions":{"has_obstruction":false}}"#
            let silent = #"{"frameId":"frame_00044","obstructions":{},"backgroundRecommendations":{}}"#
            let body = "[\(Self.frame),\(clear),\(silent)]"
            let reply = FaultReply(200, type: "application/json", body: body)
            sandbox.faults.add(VOPIFault(.reply(reply), at: .results, times: nil))
            let table = try await place.inlet("vopi", "frames", job)
            let rows = table.output.split(separator: "\n")
            try #require(rows.count == 4, "\(table.output)\(table.errors)")
            for text in Self.frameTexts { #expect(rows[1].contains(text), "\(text): \(rows[1])") }
            #expect(rows[2].contains("none") && !rows[3].contains("none"))
            // --json has every field as the server sent it.
            let json = try await place.inlet("vopi", "frames", job, "--json")
            let line = try #require(json.output.split(separator: "\n").first)
            func sorted(_ text: some StringProtocol) throws -> Data {
                let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
                return try JSONSerialization.data(withJSONObject: object, options: .sortedKeys)
            }
            #expect(try sorted(line) == sorted(Self.frame))
        }
    }

    @Test func `jobs are listed by pages of twenty, and by their status`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            for number in 1...2 { try sandbox.addJob(videoURL: "https://videos.example/\(number).mp4") }
            // Nothing is at these addresses: the first step fails.
            sandbox.advance()
            for number in 3...23 { try sandbox.addJob(videoURL: "https://videos.example/\(number).mp4") }
            let newest = Array(sandbox.jobs().map(\.id).reversed())
            func listed(_ more: String...) async throws -> [String] {
                let result = try await place.inlet(["vopi", "jobs", "--json"] + more, code: 0)
                return try result.objects().compactMap { $0["id"] as? String }
            }
            #expect(try await listed() == Array(newest.prefix(20)))
            #expect(try await listed("--offset", "20") == Array(newest.suffix(3)))
            #expect(try await listed("--status", "failed") == Array(newest.suffix(2)))
            #expect(try await listed("--status", "pending", "--limit", "100") == Array(newest.prefix(21)))
            let first = try await place.inlet("vopi", "jobs", says: "20 of 23; more with --offset 20")
            #expect(first.output.split(separator: "\n").count == 22, "a heading, twenty jobs and what is left")
            let last = try await place.inlet("vopi", "jobs", "--status", "failed", "--offset", "1", says: newest[22])
            #expect(!last.output.contains("more with"), "\(last.output)")
        }
    }

    @Test func `a running agent gives its token, and alone the stored login is used`() async throws {
        try await withVOPI { place, sandbox in
            let agent = try await deliver(place)
            #expect(sandbox.tally.refreshes == 1)
            for _ in 0..<3 { try await place.inlet("vopi", "jobs", code: 0) }
            #expect(sandbox.tally.refreshes == 1, "the agent's token serves the commands too")
            // One that the server refuses early is renewed by the agent that lent it.
            sandbox.expireAccessTokens()
            for _ in 0..<2 {
                try await place.inlet("vopi", "jobs", code: 0)
                #expect(sandbox.tally.refreshes == 2)
            }
            #expect(try await agent.stop() == .code(0))
            sandbox.expireAccessTokens()
            let alone = try await place.inlet("vopi", "jobs", code: 0)
            #expect(sandbox.tally.refreshes == 3)
            let login = String(decoding: try place.content(place.folder.path.appending("login")), as: UTF8.self)
            #expect(!(alone.output + alone.errors + agent.errors).contains(login.trimmingCharacters(in: .newlines)))
        }
    }

    @Test(.enabled(if: Nobody.isAvailable))
    func `a command that root runs leaves a login that the agent's own user can renew`() async throws {
        try await withVOPI { place, sandbox in
            try place.folder.makeDirectory("state")
            try Nobody.own(place.folder.path)
            try await place.inlet("vopi", "jobs", code: 0)
            let tokens = place.state.appending("tokens")
            let names = try FileManager.default.contentsOfDirectory(atPath: tokens.string)
            #expect(names.count >= 2, "\(names)")
            for path in [tokens] + names.map({ tokens.appending($0) }) {
                let owner = try FileManager.default.attributesOfItem(atPath: path.string)[.ownerAccountID] as? NSNumber
                #expect(owner?.intValue == 65534, "\(path)")
            }
            sandbox.expireAccessTokens()
            let agent = try await place.run(launcher: Nobody.launcher)
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            #expect(sandbox.tally.refreshes == 2)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `check warns of a login that was not renewed for days, and says what to do`() async throws {
        try await withVOPI { place, sandbox in
            try await place.inlet("check", code: 0)
            let file = place.state.appending("tokens").appending("store.json")
            var login = try JSONSerialization.jsonObject(with: place.content(file)) as? [String: Any] ?? [:]
            let renewed = try #require(login["obtained_at_ms"] as? NSNumber).int64Value
            login["obtained_at_ms"] = renewed - 6 * 86_400_000 - 1000
            try JSONSerialization.data(withJSONObject: login).write(to: URL(fileURLWithPath: file.string))
            sandbox.faults.add(VOPIFault(.status(503), at: .refresh, times: nil))
            try await place.inlet("check", code: 69, says: "last renewed 6 days ago", "put the new refresh token into")
        }
    }

    @Test func `cancelling and deleting are said at the server`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.wait("the job") { sandbox.jobs().count == 1 }
            let job = try #require(sandbox.jobs().first?.id)
            try await place.inlet("vopi", "cancel", job, code: 0)
            #expect(sandbox.tally.cancels == 1)
            try await place.inlet("vopi", "cancel", job, code: 1, errors: "[conflict]")
            try await place.inlet("vopi", "delete", job, code: 64)
            #expect(sandbox.tally.deletes == 0)
            try await place.inlet("vopi", "delete", job, "--yes", code: 0)
            #expect(sandbox.jobs().isEmpty)
            try await place.inlet("vopi", "show", job, code: 1, errors: "[not_found]")
        }
    }

    @Test func `one picture can be deleted, and the others stay`() async throws {
        try await withVOPI { place, sandbox in
            let agent = try await deliver(place)
            let job = try #require(sandbox.jobs().first?.id)
            let version = try #require(
                try await place.inlet("vopi", "images", job, "--json").objects().first?["version"] as? String)
            let before = sandbox.pictures(of: job).count
            // Half a name is never the whole job.
            for half in ["hero/", "/\(version)", "/", "hero", "", "hero//\(version)"] {
                try await place.inlet("vopi", "delete", job, "--image", half, "--yes", code: 64)
            }
            #expect(sandbox.jobs().count == 1 && sandbox.pictures(of: job).count == before)
            let deleted = try await place.inlet("vopi", "delete", job, "--image", "hero/\(version)", "--yes", code: 0)
            #expect(deleted.output.contains("hero/\(version) is deleted"))
            #expect(sandbox.pictures(of: job).count == before - 1)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `an older server is asked with its key, and never sent what would delete`() async throws {
        try await withVOPI(VOPIRules(generation: .apiKey, pace: .polls(steps: 8))) { place, sandbox in
            let agent = try await deliver(place)
            let job = try #require(sandbox.jobs().first?.id)
            try await place.inlet("vopi", "jobs", says: job)
            // Its jobs tell no results: the pictures are those of `images/grouped`, by variant and version.
            let reads = sandbox.counts()["results"] ?? 0
            let images = try await place.inlet("vopi", "images", job, "--json")
            let image = try #require(try images.objects().first).compactMapValues { $0 as? String }
            #expect(try images.objects().count == 1 && sandbox.counts()["results"] == reads + 1, "\(images.errors)")
            #expect(image["frame"] == "product_1_hero" && image["version"] == "transparent")
            #expect(image["url"]?.hasSuffix("/jobs/\(job)/commercial/hero_transparent.png") == true, "\(image)")
            let refused = try await place.inlet("vopi", "delete", job, "--yes", code: 1)
            #expect(sandbox.jobs().map(\.status) == ["completed"])
            for text in [refused.errors, agent.errors] { #expect(!text.contains("vopi-key-7731")) }
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `check says whether the login is good, and sends no video`() async throws {
        try await withVOPI(route: ["with: { commercial_versions: \"solid, real\" }"]) { place, sandbox in
            try await place.inlet(
                "check", "--upload", code: 0, says: "every job costs credits",
                "results go to \(place.folder.path.appending("pictures").string)",
                "orders 1 of 4 kinds of pictures for each video: transparent",
                "route all orders 2 of 4 kinds of pictures for each video: solid, real")
            #expect(sandbox.tally.presigns == 0 && sandbox.jobs().isEmpty)
            try place.configure(replacing: "solid, real", with: "solid, purple")
            try await place.inlet("check", says: "route all: commercial_versions: 'purple' is not known")
            try place.configure(replacing: "solid, purple", with: "solid, real")
            let all = VOPIJobConfig.versions.joined(separator: ", ")
            try place.configure(
                replacing: "results: pictures", with: "results: drop/pictures, job: { commercial_versions: [\(all)] }")
            try await place.inlet(
                "check", code: 1, says: "orders 4 of 4 kinds of pictures for each video: \(all)",
                "below the watched folder")
            sandbox.revokeRefreshTokens()
            sandbox.expireAccessTokens()
            try await place.inlet("check", code: 69)
            try await place.inlet("vopi", "jobs", code: 69)
        }
    }

    @Test func `commands about a server that is not configured are 78`() async throws {
        let place = try Place()
        for command in [["vopi", "jobs"], ["roboscope", "spaces"]] {
            try await place.inlet(command, code: 78, errors: "no destination of type \(command[0])")
        }
        try await place.inlet("vopi", "jobs", "--destination", "store", code: 78, errors: "is of type folder, not vopi")
    }
}

/// `inlet queue` on videos whose jobs run at a VOPI server, or have run there.
@Suite(.serialized) struct VOPIQueueTests {
    @Test func `a job is cancelled though its destination is paused; only a new upload is safe after that`()
        async throws
    {
        try await withVOPI(VOPIRules(pace: .manual)) { place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.waiting")
            try await place.inlet("pause", "store", code: 0)
            try await place.inlet("queue", "cancel", "1", code: 0)
            try await agent.line("transfer.aborted")
            #expect(sandbox.tally.cancels == 1)
            sandbox.rules.pace = .polls(steps: 8)
            try await place.inlet("resume", "store", code: 0)
            try await place.inlet("queue", "retry", "1", code: 0)
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            // A cancelled job that was running would complete, and take its video away.
            let tally = sandbox.tally
            #expect(tally.jobs == 2 && tally.puts == 2 && sandbox.videos().count == 2)
            #expect(sandbox.jobs().map(\.status) == ["cancelled", "completed"])
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `a job that failed is made again of the same upload`() async throws {
        try await withVOPI(VOPIRules(pace: .polls(steps: 8), outcome: .fails("No product in sight"))) {
            place, sandbox in
            let agent = try await place.run()
            try place.put("kettle.mp4", bytes(300_000))
            try await agent.line("job.finished") { $0["state"] == "failed" }
            try await agent.line("transfer.aborted")
            sandbox.rules.outcome = .completes
            try await place.inlet("queue", "retry", "1", code: 0)
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            let tally = sandbox.tally
            #expect(tally.jobs == 2 && tally.presigns == 1 && tally.puts == 1)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
