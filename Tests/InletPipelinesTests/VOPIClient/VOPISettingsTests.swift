import InletCore
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What a `type: vopi` section may say, and what a job is asked for.
@Suite struct VOPISettingsTests {
    private static func settings(
        _ values: [String: ConfigValue?] = [:], auth: [String: ConfigValue] = ["api_key": .secret(Secret("k"))]
    ) throws(SettingFault) -> VOPISettings {
        let good: [String: ConfigValue?] = [
            "url": .string("https://api.vopi.example"), "auth": .section(VOPIClientPlace.section(auth)),
            "results": .string("/srv/results"),
        ]
        return try VOPISettings(VOPIClientPlace.section(good.merging(values) { $1 }.compactMapValues(\.self)))
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
        ("job", ["job": .section(VOPIClientPlace.section(["stack": .string("clasic")]))]),
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
