import InletCore
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Answers are read whatever their fields hold.
@Suite struct VOPIMessageTests {
    private static func value(_ json: String) -> VOPIValue { VOPIValue(Array(json.utf8)) ?? .null }

    private static let api = "https://api.vopi.example"

    private static func rules() throws -> URLRules {
        .sentByServer(at: try HTTPURL(api, rules: .configured(allowHTTP: false)), allowHTTP: false)
    }

    // MARK: - Jobs

    @Test(arguments: [
        #"{"id":"j"}"#, #"{"id":"j","status":"pending"}"#,
        #"{"id":"j","progress":{},"result":{},"config":{},"error":"","startedAt":"","completedAt":"","videoUrl":""}"#,
        #"{"id":"j","progress":null,"result":null,"config":null,"error":null,"startedAt":null,"updatedAt":null}"#,
        #"{"id":"j","progress":0,"result":"","config":0,"error":0,"startedAt":0,"createdAt":{},"videoUrl":0}"#,
        #"{"id":"j","progress":[],"result":[],"config":[],"error":[],"startedAt":[],"status":""}"#,
        #"{"id":"j","status":"pending","unknown":{"deep":[1,2,{}]},"createdAt":"yesterday"}"#,
    ])
    func `what is not set reads as absent, however it is written`(_ json: String) throws {
        let job = try #require(VOPIJob(Self.value(json)))
        #expect(job.id == "j" && job.status == .pending)
        #expect(job.progress == nil && job.result == nil && job.config == nil && job.error == nil)
        #expect(
            job.raw["startedAt"].time == nil && job.completedAt == nil && job.createdAt == nil && job.videoURL == nil)
    }

    @Test(arguments: ["{}", "[]", "null", "7", #"{"id":""}"#, #"{"id":{}}"#, #"{"id":7,"status":"pending"}"#])
    func `an answer without an id is no job`(_ json: String) { #expect(VOPIJob(Self.value(json)) == nil) }

    @Test func `a job that says everything is read whole`() throws {
        let job = try #require(
            VOPIJob(
                Self.value(
                    """
                    {"id":"j","status":"generating","videoUrl":"https://s3.example/v.mp4","config":{"fps":10},
                    "progress":{"step":"generating","percentage":81.5,"message":"Making pictures","totalSteps":7,
                    "currentStep":"6","imagesGenerated":3},"result":{"variantsDiscovered":2,"framesAnalyzed":"31",
                    "finalFrames":["https://a/1.png","",7],"commercialImages":{"hero":{"transparent":"https://a/2.png",
                    "solid":""},"side":{},"odd":7}},"error":"the try before","createdAt":"2026-01-30T10:00:00.000Z",
                    "updatedAt":"2026-01-30T10:05:00Z","startedAt":"2026-01-30T10:00:00.123Z"}
                    """)))
        #expect(job.status == .running("generating"))
        #expect(job.progress?.percentage == 81.5 && job.progress?.step == "generating")
        #expect(job.raw["progress"]["currentStep"].integer == 6 && job.raw["result"]["framesAnalyzed"].integer == 31)
        #expect(job.result?.finalFrames == ["https://a/1.png"])
        #expect(job.result?.commercialImages == ["hero": ["transparent": "https://a/2.png"], "side": [:]])
        #expect(job.result?.count == 2)
        #expect(job.createdAt?.rfc3339 == "2026-01-30T10:00:00.000Z")
        #expect(job.updatedAt?.rfc3339 == "2026-01-30T10:05:00.000Z")
        #expect(job.raw["startedAt"].time?.rfc3339 == "2026-01-30T10:00:00.123Z")
        #expect(job.raw["progress"]["imagesGenerated"].integer == 3)
    }

    @Test func `every status has one reading`() {
        let known: [(String?, VOPIStatus)] = [
            (nil, .pending), ("pending", .pending), ("downloading", .running("downloading")),
            ("extracting", .running("extracting")), ("scoring", .running("scoring")),
            ("classifying", .running("classifying")), ("extracting_product", .running("extracting_product")),
            ("generating", .running("generating")), ("completed", .completed), ("failed", .failed),
            ("cancelled", .cancelled), ("zzz", .running("zzz")),
        ]
        for (text, status) in known {
            #expect(VOPIStatus(text) == status)
            #expect(VOPIStatus(text).text == text ?? "pending")
        }
    }

    @Test(
        arguments: [
            ("{}", nil), ("null", nil), (#"{"percentage":"12"}"#, 12), (#"{"percentage":-1}"#, 0),
            (#"{"percentage":1e9}"#, 100), (#"{"step":"x"}"#, 0), (#"{"totalSteps":7}"#, nil),
            (#"{"step":"","percentage":"much"}"#, nil),
        ] as [(String, Double?)])
    func `progress is within its bounds or absent`(_ json: String, _ percentage: Double?) {
        #expect(VOPIProgress(Self.value(json))?.percentage == percentage)
    }

    @Test func `a list must be one, and its odd entries are left out`() {
        #expect(VOPIJob.page(Self.value("{}")) == nil && VOPIJob.page(Self.value(#"{"jobs":{}}"#)) == nil)
        #expect(VOPIJob.page(Self.value(#"{"jobs":null,"total":3}"#)) == nil)
        let page = VOPIJob.page(
            Self.value(#"{"jobs":[{"id":"a"},{},7,null,{"id":"b","status":"failed"}],"total":"9"}"#))
        #expect(page?.jobs.map(\.id) == ["a", "b"] && page?.total == 9)
        #expect(VOPIJob.page(Self.value(#"{"jobs":[]}"#))?.total == nil)
    }

    // MARK: - Places and links

    @Test func `an upload place needs its two addresses, and may be nowhere near us`() throws {
        let good = #"{"uploadUrl":"https://s3.example/u?X-Amz-Expires=60","publicUrl":"https://s3.example/u"}"#
        let place = try VOPIAPI.uploadPlace(Self.value(good), asked: .seconds(77), rules: Self.rules())
        #expect(place?.expiresIn == .seconds(77))
        for json in ["{}", #"{"uploadUrl":"https://s3.example/u"}"#, #"{"publicUrl":"x","uploadUrl":{}}"#] {
            #expect(try VOPIAPI.uploadPlace(Self.value(json), asked: .seconds(1), rules: Self.rules()) == nil)
        }
        for url in [
            "http://s3.example/u", "https://127.0.0.1/u", "https://10.0.0.1/u", "ftp://s3.example/u",
            "file:///etc/passwd",
            "https://169.254.169.254/latest", "https://user:pass@s3.example/u",
        ] {
            #expect(throws: TransferError.self, "\(url)") {
                try VOPIAPI.uploadPlace(
                    Self.value(#"{"uploadUrl":"\#(url)","publicUrl":"p"}"#), asked: .seconds(1), rules: Self.rules())
            }
        }
    }

    @Test func `links that are refused are named, and the others kept`() throws {
        let downloads = try #require(
            VOPIDownloads(
                Self.value(
                    """
                    {"jobId":"j","expiresIn":"600","frames":[{"frameId":"frame_1","downloadUrl":"https://s3.example/1"},
                    {"frameId":"frame_1","downloadUrl":"https://s3.example/2"},{"downloadUrl":"http://127.0.0.1/3"},
                    {"frameId":"x","downloadUrl":""},7],"commercialImages":{"hero":{"a":"https://s3.example/4","b":"ftp://x/5",
                    "c":{}},"none":{}},"productMetadata":{"transcript":"t"}}
                    """), rules: Self.rules()))
        #expect(downloads.frames.map(\.frameID) == ["frame_1", "frame_1"])
        #expect(downloads.images["hero"]?.keys.sorted() == ["a"] && downloads.images["none"] == [:])
        #expect(downloads.entries.count == 3 && downloads.refused.count == 2)
        #expect(downloads.productMetadata?["transcript"].text == "t")
    }

    @Test(arguments: [
        #"{"jobId":"j"}"#, #"{"jobId":"j","frames":{},"commercialImages":[],"productMetadata":{}}"#,
        #"{"frames":[]}"#, #"{"commercialImages":{},"productMetadata":null,"expiresIn":{}}"#,
    ])
    func `results may be none at all`(_ json: String) throws {
        let downloads = try VOPIDownloads(Self.value(json), rules: Self.rules())
        #expect(downloads?.entries.isEmpty == true && downloads?.productMetadata == nil)
    }

    @Test func `an answer about something else is no list of links`() throws {
        for json in ["{}", "[]", "null", #"{"error":"X"}"#] {
            let downloads = try VOPIDownloads(Self.value(json), rules: Self.rules())
            #expect(downloads == nil)
        }
    }

    // MARK: - Frames, images, balance

    @Test func `frames with empty fields are frames`() async throws {
        let json =
            #"{"id":"r","frameId":"frame_1","s3Url":"","timestamp":"4.5","obstructions":{},"productId":"","variantId":0}"#
        let place = try VOPIClientPlace { _, _ in .json(200, "[\(json),\"x\"]") }
        let frames = try await place.api(key: "key").frames("j")
        let frame = try #require(frames.first)
        #expect(frames.count == 1)
        #expect(frame["frameId"].text == "frame_1" && frame["timestamp"].number == 4.5)
        #expect(frame["s3Url"].text == nil && frame["productId"].text == nil)
        #expect(frame["variantId"].text == nil && frame.obstructionText == nil)
    }

    @Test(
        arguments: [
            ("{}", nil, nil), (#"{"obstructions":{},"backgroundRecommendations":{}}"#, nil, nil),
            (#"{"obstructions":{"has_obstruction":false,"obstruction_types":["hand"]}}"#, "none", nil),
            (#"{"obstructions":{"has_obstruction":true}}"#, "yes", nil),
            (#"{"obstructions":{"has_obstruction":true,"obstruction_types":["hand","glare"]}}"#, "hand, glare", nil),
            (
                #"{"obstructions":{"obstruction_description":"a hand","removable_by_ai":true}}"#, "a hand; removable",
                nil
            ),
            (##"{"backgroundRecommendations":{"solid_color":"#FFFFFF"}}"##, nil, "solid: #FFFFFF"),
            (
                ##"{"backgroundRecommendations":{"solid_color":"#FFF","solid_color_name":"white","creative_shot":"a cloud"}}"##,
                nil, "solid: white (#FFF); creative: a cloud"
            ),
        ] as [(String, String?, String?)])
    func `what stands in a frame's way, and what may stand behind it, is said in words`(
        _ json: String, _ obstruction: String?, _ background: String?
    ) {
        let frame = Self.value(json)
        #expect(frame.obstructionText == obstruction && frame.backgroundText == background)
    }

    @Test(
        arguments: [
            (#"{"balance":5}"#, 5), (#"{"balance":"5"}"#, 5), (#"{"balance":0}"#, 0), (#"{"balance":2.5}"#, 2.5),
            ("{}", nil), (#"{"balance":{}}"#, nil), ("null", nil),
        ] as [(String, Double?)])
    func `a balance is a number or unknown`(_ json: String, _ credits: Double?) async throws {
        let place = try VOPIClientPlace { _, _ in .json(200, json) }
        let api = try place.api(key: "key")
        guard let credits else {
            #expect(await failure { () throws(DeliveryError) in try await api.balance() }?.code == .badAnswer)
            return
        }
        #expect(try await api.balance() == credits)
    }

    @Test func `every damaged answer is read without a fault`() {
        let whole = Array(
            #"{"id":"j","status":"failed","progress":{"step":"x","percentage":3},"jobs":[{"id":"a"}]}"#.utf8)
        var generator = SeededGenerator(seed: 24)
        for _ in 0..<2000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            let value = VOPIValue(Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))) ?? .null
            let job = VOPIJob(value)
            #expect(job == nil || job?.id.isEmpty == false)
            #expect((0...100).contains(VOPIProgress(value["progress"])?.percentage ?? 0))
        }
    }
}

/// What a `type: vopi` section may say, and what a job is asked for.
@Suite struct VOPISettingsTests {
    private static func settings(
        _ values: [String: ConfigValue?] = [:], auth: [String: ConfigValue] = ["api_key": .secret(Secret("k"))]
    ) throws(SettingFault) -> VOPISettings {
        let good: [String: ConfigValue?] = [
            "url": .string("https://api.vopi.example"), "auth": .section(section(auth)),
            "results": .string("/srv/results"),
        ]
        return try VOPISettings(section(good.merging(values) { $1 }.compactMapValues(\.self)))
    }

    @Test func `defaults are those of the key table`() throws {
        let settings = try Self.settings()
        #expect(settings.login == .apiKey(Secret("k")) && settings.poll == .seconds(3) && settings.maxInFlight == 2)
        #expect(settings.softLimit == .seconds(3600) && settings.hardLimit == .seconds(21_600))
        #expect(settings.noProgress == .seconds(60) && settings.job == VOPIJobConfig() && settings.callbackURL == nil)
        #expect(settings.results == "/srv/results")
    }

    @Test func `one way of logging in is needed, and one only`() throws {
        let file: [String: ConfigValue] = ["refresh_token_file": .string("/etc/token")]
        #expect(try Self.settings(auth: file).login == .tokens(seed: "/etc/token"))
        let both = file.merging(["api_key": .secret(Secret("k"))]) { $1 }
        for auth in [both, [:], ["api_key": .secret(Secret(""))], ["refresh_token_file": .string("")]] {
            #expect(throws: SettingFault.self) { try Self.settings(auth: auth) }
        }
    }

    static let faults: [(String, [String: ConfigValue?])] = [
        ("url", ["url": nil]), ("url", ["url": .string("api.vopi.example")]),
        ("url", ["url": .string("http://api.vopi.example")]), ("auth", ["auth": nil]), ("results", ["results": nil]),
        ("callback_url", ["callback_url": .string("ftp://hooks.example")]),
        ("callback_url", ["callback_url": .string("http://localhost:1/x")]),
        ("callback_url", ["callback_url": .string("hook")]), ("poll", ["poll": .duration(.milliseconds(10))]),
        ("hard_limit", ["hard_limit": .duration(.seconds(60))]), ("no_progress", ["no_progress": .duration(.zero)]),
        ("job", ["job": .section(section(["stack": .string("clasic")]))]),
    ]

    @Test(arguments: faults.indices) func `what cannot be used is refused with its key`(_ index: Int) {
        let (key, values) = Self.faults[index]
        let fault = #expect(throws: SettingFault.self) { try Self.settings(values) }
        #expect(fault?.key == key)
    }

    @Test func `plain HTTP is for loopback, and elsewhere by permission`() throws {
        #expect(try Self.settings(["url": .string("http://127.0.0.1:3000")]).url.isLoopback)
        let allowed = try Self.settings(["url": .string("http://vopi.lan"), "allow_http": .boolean(true)])
        #expect(allowed.url.scheme == "http")
        let local = try Self.settings([
            "url": .string("http://127.0.0.1:3000"), "callback_url": .string("http://localhost/x"),
        ])
        #expect(local.callbackURL == "http://localhost/x")
    }

    // MARK: - Jobs

    static let objections: [(String?, VOPIJobConfig)] = [
        (nil, config()), (nil, config(fps: 1)), (nil, config(fps: 30)), ("fps", config(fps: 0.9)),
        ("fps", config(fps: 31)), ("fps", config(fps: .nan)), (nil, config(batch: 1)), ("batch_size", config(batch: 0)),
        ("batch_size", config(batch: 101)), (nil, config(versions: ["solid", "real"])),
        ("commercial_versions", config(versions: ["sold"])), ("commercial_versions", config(versions: [])),
        (nil, config(stack: "full_gemini")), ("stack", config(stack: "zzz")), ("gemini_model", config(model: "")),
    ]

    private static func config(
        fps: Double? = nil, batch: Int? = nil, versions: [String]? = nil, stack: String? = nil, model: String? = nil
    ) -> VOPIJobConfig {
        var config = VOPIJobConfig()
        config.fps = fps
        config.batchSize = batch
        config.commercialVersions = versions
        config.stackID = stack
        config.geminiModel = model
        return config
    }

    @Test(arguments: objections.indices) func `a job that the server would refuse is refused here`(_ index: Int) {
        let (key, config) = Self.objections[index]
        #expect(config.objection()?.key == key)
    }

    @Test func `a mistyped word comes with the one that was meant`() {
        #expect(Self.config(versions: ["sold"]).objection()?.reason.contains("did you mean 'solid'?") == true)
        #expect(Self.config(stack: "clasic").objection()?.reason.contains("did you mean 'classic'?") == true)
    }

    static let bodies: [(VOPINewJob, String)] = [
        (VOPINewJob(videoURL: "u"), #"{"videoUrl":"u"}"#),
        (
            VOPINewJob(videoURL: "u", callbackURL: "https://h", estimatedDuration: 30),
            #"{"callbackUrl":"https://h","estimatedDurationSeconds":30,"videoUrl":"u"}"#
        ),
        (VOPINewJob(videoURL: "u", estimatedDuration: 12.5), #"{"estimatedDurationSeconds":12.5,"videoUrl":"u"}"#),
        (VOPINewJob(videoURL: "u", estimatedDuration: 1500.1), #"{"videoUrl":"u"}"#),
        (VOPINewJob(videoURL: "u", estimatedDuration: 0), #"{"videoUrl":"u"}"#),
        (
            VOPINewJob(videoURL: "u", config: config(fps: 5)),
            #"{"config":{"commercialVersions":["transparent"],"fps":5},"videoUrl":"u"}"#
        ),
        (
            VOPINewJob(videoURL: "u", config: config(versions: ["real"], stack: "minimal")),
            #"{"config":{"commercialVersions":["real"],"stack":{"stackId":"minimal"}},"videoUrl":"u"}"#
        ),
    ]

    @Test(arguments: bodies.indices) func `a new job says what is set and nothing else`(_ index: Int) {
        let (job, body) = Self.bodies[index]
        #expect(job.json.text == body)
    }
}
