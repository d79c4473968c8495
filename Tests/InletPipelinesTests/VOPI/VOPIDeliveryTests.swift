import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(15))) struct VOPIDeliveryTests {
    @Test(arguments: [VOPIRules.Generation.apiKey, .bearer])
    func `a video becomes pictures, on servers of both generations`(_ generation: VOPIRules.Generation) async throws {
        try await withVOPI(VOPIRules(generation: generation), file: 2_000_000) { place, path, order, _ in
            let proof = try await place.deliver(path, order)
            let job = try #require(place.sandbox.jobs().first)
            #expect(proof.key == order.key)
            #expect(proof.size == 2_000_000)
            #expect(proof.method == .md5Parts)
            #expect(proof.details?["job_id"] == job.id)
            #expect(proof.details?["results"] == place.results.appending(job.id).string)
            #expect(proof.details?["missing"] == nil)
            let video = try #require(place.sandbox.videos().first)
            #expect(video.size == 2_000_000)
            #expect(video.contentType == "video/mp4")
            #expect(try place.fetched(of: job.id) == place.pictures(of: job.id))
            #expect(try place.pictures(of: job.id).count >= 4)
            let tally = place.sandbox.tally
            #expect((tally.presigns, tally.puts, tally.jobs, tally.cancels, tally.deletes) == (1, 1, 1, 0, 0))
        }
    }

    @Test func `product.json tells of the product, the shops and every file`() async throws {
        try await withVOPI { place, path, order, _ in
            _ = try await place.deliver(path, order)
            let job = try #require(place.sandbox.jobs().first)
            let product = try place.product(of: job.id)
            #expect(product["job"] as? String == job.id)
            #expect(product["complete"] as? Bool == true)
            #expect((product["platforms"] as? [String: Any])?.keys.sorted() == ["amazon", "ebay", "shopify"])
            #expect((product["metadata"] as? [String: Any])?["transcript"] != nil)
            let listed = try #require(product["files"] as? [[String: Any]]).compactMap { $0["path"] as? String }
            #expect(Set(listed + ["product.json"]) == Set(try place.files(of: job.id).keys))
            #expect(product["expected"] as? Int == listed.count)
            #expect((product["video"] as? [String: Any])?["name"] as? String == "clip.mp4")
        }
    }

    @Test func `a job that runs gives its worker back, and says what it does`() async throws {
        try await withVOPI(VOPIRules(pace: .manual, progress: .full)) { place, path, order, notes in
            var waits: [Duration] = []
            for _ in 1...3 {
                let start = place.clock.now
                let attempt = notes.attempt()
                let (until, saying) = try await place.attempt(path, order, attempt).get().wait()
                #expect(saying?.hasPrefix("processing") == true)
                #expect((70...95).contains(attempt.progress?.percent ?? 0))
                waits.append(until - start)
                place.sandbox.advance(steps: 2)
                place.clock.advance(.seconds(300))
            }
            #expect(waits[0] >= .seconds(3) && waits[0] <= .milliseconds(3600))
            #expect(waits[2] > .seconds(20) && waits[2] <= .seconds(36))
            place.sandbox.advance(steps: 10)
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.tally.jobs == 1)
        }
    }

    /// The statuses of the reference (`JobStatusType`), in its order, and what is said of a job in each; nil for the one that
    /// ends the wait. A job takes a step from each of the first eight to the next.
    static let statuses: [(status: String, saying: String?)] = [
        ("pending", "processing: pending"), ("downloading", "processing: downloading, 5 %"),
        ("extracting", "processing: extracting, 20 %"), ("scoring", "processing: scoring, 40 %"),
        ("classifying", "processing: classifying, 60 %"),
        ("extracting_product", "processing: extracting_product, 68 %"), ("generating", "processing: generating, 81 %"),
        ("completed", nil), ("failed", "failed once (no colours); it may be tried again"),
        ("cancelled", "cancelled at the server; it completes where it was running"),
    ]

    @Test(arguments: statuses.indices)
    func `each status of a job is told, and only completed ends the wait`(_ index: Int) async throws {
        let (status, saying) = Self.statuses[index]
        let outcome: VOPIRules.Outcome = status == "failed" ? .fails(times: 1, error: "no colours") : .completes
        try await withVOPI(VOPIRules(pace: .manual, outcome: outcome, progress: .full)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            let job = try #require(place.sandbox.jobs().first)
            switch status {
            case "cancelled": try await place.api.cancel(job.id)
            // It fails on the way from classifying to the product.
            case "failed": place.sandbox.advance(steps: 5)
            default: place.sandbox.advance(steps: index)
            }
            #expect(place.sandbox.jobs().map(\.status) == [status])
            let attempt = notes.attempt()
            switch try await place.attempt(path, order, attempt).get() {
            case .waiting(_, let said): #expect(said == saying && attempt.progress?.step == saying)
            case .delivered: #expect(saying == nil, "\(status) is no end")
            }
            #expect(place.count(.downloadURLs) == (saying == nil ? 1 : 0))
        }
    }

    @Test func `fields of the route reach the job, wrong ones are refused before a byte leaves`() async throws {
        try await withVOPI { place in
            let fields = [
                "fps": "5", "commercial_versions": "solid, creative", "stack_id": "classic", "label": "other's",
            ]
            let (path, order) = try place.file(fields: fields)
            _ = try await place.deliver(path, order)
            let config = try #require(place.sandbox.jobs().first?.config)
            #expect(config["fps"]?.number == 5)
            #expect(config["commercialVersions"]?.items?.compactMap(\.text) == ["solid", "creative"])
            #expect(config["stack"]?["stackId"]?.text == "classic")
            for (name, text) in [
                ("fps", "31"), ("fps", "many"), ("batch_size", "0"), ("batch_size", "1.5"), ("ai_cleanup", "perhaps"),
                ("commercial_versions", "golden"), ("stack_id", "clasic"), ("callback_url", "gopher://x"),
                ("estimated_duration", "-1"),
            ] {
                let (path, order) = try place.file(10, "wrong.mp4", fields: [name: text])
                let error = try await place.failure(path, order)
                #expect(error?.verdict == .giveUp && error?.reason.contains(name) == true, "\(name): \(text)")
            }
            #expect(place.sandbox.tally.presigns == 1)
        }
    }

    /// Keys of `job:`, the `config` that the server is sent for them, and the kinds of pictures that it makes.
    static let orders: [(keys: [String: ConfigValue], config: SandboxJSON?, kinds: [String])] = [
        ([:], nil, ["transparent"]),
        (["fps": .integer(5)], ["fps": 5, "commercialVersions": ["transparent"]], ["transparent"]),
        (["commercial_versions": .list([.string("real")])], ["commercialVersions": ["real"]], ["real"]),
        (
            ["commercial_versions": .list(VOPIJobConfig.versions.map { .string($0) })],
            ["commercialVersions": ["transparent", "solid", "real", "creative"]],
            ["transparent", "solid", "real", "creative"]
        ),
    ]

    @Test(arguments: orders.indices)
    func `only the kinds of pictures that are configured are ordered`(_ index: Int) async throws {
        let (keys, config, kinds) = Self.orders[index]
        try await withVOPI(settings: keys.isEmpty ? [:] : ["job": .section(section(keys))]) { place, path, order, _ in
            _ = try await place.deliver(path, order)
            let job = try #require(place.sandbox.jobs().first)
            var body: [String: SandboxJSON] = ["videoUrl": .string(job.videoURL)]
            body["config"] = config
            #expect(job.received == .object(body))
            let files = try place.files(of: job.id).keys.filter { $0.hasPrefix("images/") }
            #expect(Set(files) == Set(kinds.map { "images/hero/\($0).png" }))
        }
    }

    /// The destination's address, the route's, and the one that the server is sent.
    static let callbacks: [(destination: String?, route: String?, sent: String?)] = [
        (nil, nil, nil), ("https://shop.example/done", nil, "https://shop.example/done"),
        (nil, "http://shop.example/route?id=7", "http://shop.example/route?id=7"),
        ("https://shop.example/done", "https://shop.example/route", "https://shop.example/route"),
        ("https://shop.example/done", " ", "https://shop.example/done"),
    ]

    @Test(arguments: callbacks.indices)
    func `the server is told whom to call when a job is done`(_ index: Int) async throws {
        let (destination, route, sent) = Self.callbacks[index]
        var settings: [String: ConfigValue] = [:]
        settings["callback_url"] = destination.map { .string($0) }
        var fields: [String: String] = [:]
        fields["callback_url"] = route
        try await withVOPI(settings: settings) { [fields] place in
            let (path, order) = try place.file(fields: fields)
            _ = try await place.deliver(path, order)
            let job = try #require(place.sandbox.jobs().first)
            // One that is not set is not there: the server refuses null.
            #expect(job.received["callbackUrl"] == sent.map(SandboxJSON.string))
            #expect(job.callbackURL == sent)
        }
    }

    @Test func `files that the server cannot take are refused here`() async throws {
        try await withVOPI { place in
            for name in ["clip.avi", "clip", "mp4", "picture.png"] {
                let (path, order) = try place.file(10, name)
                #expect(try await place.failure(path, order)?.code == .badRequest, "\(name)")
            }
            let (empty, order) = try place.file(0)
            #expect(try await place.failure(empty, order)?.code == .badRequest)
            let (large, _) = try place.file(1, "large.mov")
            try truncate(large, to: 5 << 30 + 1)
            var grown = order
            grown.source = try SourceFile(opening: large).opened
            let refusal = expectError(try await place.failure(large, grown), .giveUp, code: .tooLarge)
            #expect(
                refusal?.reason.contains("large.mov is 5") == true && refusal?.reason.contains("in one piece") == true)
            #expect(place.sandbox.tally.presigns == 0)
        }
    }

    @Test(arguments: [("a.m4v", "video/mp4"), ("a.MOV", "video/quicktime"), ("a.webm", "video/webm")])
    func `each kind of video goes under its own type`(name: String, type: String) async throws {
        try await withVOPI { place in
            let (path, order) = try place.file(10, name)
            _ = try await place.deliver(path, order)
            #expect(place.sandbox.videos().first?.contentType == type)
        }
    }

    @Test func `a source that changed or went before it was sent stays out`() async throws {
        try await withVOPI { place, path, order, _ in
            try touch(path, at: 10)
            #expect(try await place.failure(path, order)?.verdict == .sourceChanged)
            #expect(try await place.pipeline.conclude(path, order, Notes().attempt()) == nil)
            #expect(place.sandbox.tally.presigns == 0)
        }
    }

    @Test func `what was sent whole goes on without its source`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            try FileManager.default.removeItem(atPath: path.string)
            place.sandbox.advance(steps: 20)
            try #require(try await place.pipeline.conclude(path, order, notes.attempt())).proof()
            let job = try #require(place.sandbox.jobs().first)
            #expect(try place.fetched(of: job.id) == place.pictures(of: job.id))
        }
    }

    @Test func `giving up a delivery cancels its job, twice without harm`() async throws {
        try await withVOPI(VOPIRules(pace: .manual)) { place, path, order, notes in
            _ = try await place.attempt(path, order, notes.attempt()).get()
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: notes.entries) }
            #expect(place.sandbox.tally.cancels == 1)
            #expect(place.sandbox.tally.deletes == 0)
            try await place.pipeline.abandon(order, checkpoint: [:])
        }
    }
}

struct VOPIFactoryTests {
    private func made(tokens: FilePath?) throws -> Destination {
        let factory = PipelineFactory(
            pool: BlockingPool(name: "vopi", threads: 1), userAgent: "inlet-tests/1", tokens: tokens)
        defer { factory.shutdown() }
        let values: [String: ConfigValue] = [
            "url": .string("https://api.vopi.example"), "results": .string("/srv/results"),
            "auth": .section(section(["refresh_token_file": .string("/etc/seed")])), "max_in_flight": .integer(3),
        ]
        return try factory.make(DestinationSettings(name: "products", type: "vopi", values: section(values)))
    }

    @Test func `uploads take workers, running jobs do not, and the login is kept alive`() throws {
        let directory = try TemporaryDirectory()
        let destination = try made(tokens: directory.path.appending("tokens"))
        #expect(destination.smallLimit < 0)
        #expect(destination.maxInFlight == 3)
        #expect(destination.takesSidecars == false)
        #expect(destination.testExtension == "mp4")
        #expect(destination.accessToken != nil && destination.keepAlive != nil)
    }

    @Test func `without a place for its login there is no destination`() {
        let fault = #expect(throws: SettingFault.self) { try made(tokens: nil) }
        #expect(fault?.key == "auth")
    }
}
