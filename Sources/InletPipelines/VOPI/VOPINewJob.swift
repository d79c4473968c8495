package import InletCore
internal import InletTransfer

/// Which files are videos to the server, and as what they go.
extension VOPIPipeline {
    /// Of one PUT to S3, and to R2.
    private static let largest: Int64 = 5 << 30

    private static let types = [
        "mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/quicktime", "webm": "video/webm",
    ]

    static func contentType(_ name: FileName) -> String? { types[name.plainExtension] }

    /// Why a file cannot be sent; nil when it can.
    static func objection(_ name: FileName, size: Int64) -> DeliveryError? {
        let shown = DisplayText.escape(name.bytes)
        if contentType(name) == nil {
            return DeliveryError(
                .giveUp, .badRequest,
                "\(shown) is not a video that the server accepts: mp4, m4v, mov or webm; nothing was sent")
        }
        if size == 0 { return DeliveryError(.giveUp, .badRequest, "\(shown) is empty; nothing was sent") }
        if size > largest {
            return DeliveryError(
                .giveUp, .tooLarge,
                "\(shown) is \(ByteText.format(size)); the server's store takes \(ByteText.format(largest)) in one piece; "
                    + "nothing was sent")
        }
        return nil
    }
}

/// How to process a video; nil leaves the choice to the server.
package struct VOPIJobConfig: Sendable, Hashable {
    package var fps: Double?
    package var batchSize: Int?
    package var commercialVersions: [String]?
    package var aiCleanup: Bool?
    package var geminiModel: String?
    package var stackID: String?

    package static let versions = ["transparent", "solid", "real", "creative"]

    /// A server takes any other name too, and then leaves the job `pending` for ever.
    package static let stacks = [
        "classic", "gemini_video", "minimal", "frames_only", "custom_bg_removal", "full_product_analysis",
        "audio_metadata_only", "stability_bg_removal", "unified_video_analyzer", "unified_video_analyzer_minimal",
        "full_gemini",
    ]

    package init() {}

    /// - Throws: `SettingFault` naming the key whose value the server would refuse.
    init(_ values: Section<VOPIJobKeys>) throws(SettingFault) {
        fps = values.fps.map { Double($0) }
        batchSize = values.batchSize
        commercialVersions = values.commercialVersions
        aiCleanup = values.aiCleanup
        geminiModel = values.geminiModel
        stackID = values.stack
        if let (_, reason) = objection() { throw SettingFault(key: "job", message: reason) }
    }

    /// A setting that the server would refuse, or accept and never finish: the key's name in a configuration, and the
    /// reason.
    package func objection() -> (key: String, reason: String)? {
        if let fps, !(1...30).contains(fps) { return ("fps", "fps must be from 1 to 30") }
        if let batchSize, !(1...100).contains(batchSize) { return ("batch_size", "batch_size must be from 1 to 100") }
        if let stranger = commercialVersions?.first(where: { !Self.versions.contains($0) }) {
            return ("commercial_versions", Self.refusal("commercial_versions", stranger, Self.versions))
        }
        if commercialVersions == [] { return ("commercial_versions", "commercial_versions must name a version") }
        if geminiModel == "" { return ("gemini_model", "gemini_model must not be empty") }
        if let stackID, !Self.stacks.contains(stackID) {
            return ("stack", Self.refusal("stack", stackID, Self.stacks))
        }
        return nil
    }

    private static func refusal(_ key: String, _ text: String, _ known: [String]) -> String {
        let hint = Suggestion.nearest(to: text, in: known).map { "did you mean '\($0)'?" }
        let shown = DisplayText.escape(String(text.prefix(60)))
        return "\(key): '\(shown)' is not known; " + (hint ?? "it takes \(known.joined(separator: ", "))")
    }

    /// The kinds that a route's text names, with commas between them.
    package static func versions(in text: String) -> [String] { text.split { ", ".contains($0) }.map { String($0) } }

    /// The kinds of pictures that a job comes to: without any `config` the server makes transparent ones alone.
    package var orderedVersions: [String] { commercialVersions ?? ["transparent"] }

    /// nil when nothing is set. The versions are always named then: with a `config` that names none the server would make
    /// all four.
    package var json: JSONValue? {
        guard self != VOPIJobConfig() else { return nil }
        return .members([
            "fps": fps.map { JSONValue($0) },
            "batchSize": batchSize.map { JSONValue($0) },
            "commercialVersions": .array(orderedVersions.map { .string($0) }),
            "aiCleanup": aiCleanup.map { .boolean($0) },
            "geminiModel": geminiModel.map { .string($0) },
            "stack": stackID.map { .object(["stackId": .string($0)]) },
        ])
    }
}

/// `job:` of a destination.
struct VOPIJobKeys: KeyTable {
    let fps = Key("fps", .integer(1...30), "Frames that the server looks at per second of video; its default is 10.")
    let batchSize = Key("batch_size", .integer(1...100), "Frames that the server judges at once; its default is 30.")
    let commercialVersions = Key(
        "commercial_versions", .list(.choice(VOPIJobConfig.versions)),
        "Kinds of pictures to make; transparent by default. More kinds may cost more."
    )
    let aiCleanup = Key("ai_cleanup", .boolean, "Removes obstructions from pictures; the server's default is true.")
    let geminiModel = Key("gemini_model", .string, "Model that looks at the frames.")
    let stack = Key("stack", .choice(VOPIJobConfig.stacks), "Chain of processors; classic by default.")
}

/// The body of `POST /api/v1/jobs`.
package struct VOPINewJob: Sendable, Hashable {
    /// The `publicURL` of an upload, as it came; nil before there is one.
    package var videoURL: String?
    package var config = VOPIJobConfig()
    /// Where the server says that the job has ended; nil for nowhere.
    package var callbackURL: String?
    /// Seconds; the server then refuses at once what the account cannot pay. Above 1500 it would answer with a 500, so
    /// that it is left out.
    package var estimatedDuration: Double?

    package static let longestEstimate = 1500.0

    package var json: JSONValue {
        let estimate = estimatedDuration.flatMap { $0 > 0 && $0 <= Self.longestEstimate ? $0 : nil }
        return .members([
            "videoUrl": videoURL.map { .string($0) }, "config": config.json,
            "callbackUrl": callbackURL.map { .string($0) },
            "estimatedDurationSeconds": estimate.map { JSONValue($0) },
        ])
    }
}

extension VOPINewJob {
    /// The settings that a route's `with:` gives a job, on top of the destination's own. They are checked before a byte
    /// is sent, and so before there is a URL.
    ///
    /// Empty fields leave the destination's; names that VOPI does not know belong to other destinations.
    init(_ fields: [String: String], settings: VOPISettings) throws(SettingFault) {
        self.init(config: settings.job, callbackURL: settings.callbackURL)
        let texts = fields.compactMapValues { text in
            let trimmed = text.split(separator: " ").joined(separator: " ")
            return trimmed.isEmpty ? nil : trimmed
        }
        if let text = texts["fps"] { config.fps = try Self.number(text, "fps") }
        if let text = texts["batch_size"] {
            guard let size = Int(text) else { throw SettingFault(key: "batch_size", message: "is not a whole number") }
            config.batchSize = size
        }
        if let text = texts["commercial_versions"] {
            config.commercialVersions = VOPIJobConfig.versions(in: text)
        }
        if let text = texts["ai_cleanup"] {
            guard let flag = Bool(text.lowercased()) else {
                throw SettingFault(key: "ai_cleanup", message: "is neither true nor false")
            }
            config.aiCleanup = flag
        }
        if let text = texts["gemini_model"] { config.geminiModel = text }
        if let text = texts["stack_id"] { config.stackID = text }
        if let (key, reason) = config.objection() {
            let bare = reason.hasPrefix(key) ? reason.dropFirst(key.count).drop { ": ".contains($0) } : reason[...]
            throw SettingFault(key: key == "stack" ? "stack_id" : key, message: String(bare))
        }
        if let text = texts["callback_url"] {
            if let objection = VOPISettings.objection(toCallback: text, at: settings.url) {
                throw SettingFault(key: "callback_url", message: objection)
            }
            callbackURL = text
        }
        estimatedDuration = try texts["estimated_duration"].map { text throws(SettingFault) in
            let seconds = try Self.number(text, "estimated_duration")
            guard seconds > 0 else { throw SettingFault(key: "estimated_duration", message: "must be above 0 seconds") }
            return seconds
        }
    }

    private static func number(_ text: String, _ field: String) throws(SettingFault) -> Double {
        guard let number = Double(text), number.isFinite else {
            throw SettingFault(key: field, message: "is not a number")
        }
        return number
    }
}
