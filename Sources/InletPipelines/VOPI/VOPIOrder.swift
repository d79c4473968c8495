internal import InletCore
internal import InletTransfer

/// What a route's `with:` asks of a job, on top of the destination's own settings; checked before a byte leaves.
struct VOPIOrder: Sendable, Equatable {
    var config: VOPIJobConfig
    var callbackURL: String?
    var estimatedDuration: Double?

    /// What is wrong with a field, for a person.
    struct Fault: Error, Equatable {
        var field: String
        var reason: String
    }

    /// Empty fields leave the destination's; names that VOPI does not know belong to other destinations.
    init(_ fields: [String: String], settings: VOPISettings) throws(Fault) {
        config = settings.job
        callbackURL = settings.callbackURL
        let texts = fields.compactMapValues { text in
            let trimmed = text.split(separator: " ").joined(separator: " ")
            return trimmed.isEmpty ? nil : trimmed
        }
        if let text = texts["fps"] { config.fps = try Self.number(text, "fps") }
        if let text = texts["batch_size"] {
            guard let size = Int(text) else { throw Fault(field: "batch_size", reason: "is not a whole number") }
            config.batchSize = size
        }
        if let text = texts["commercial_versions"] {
            config.commercialVersions = VOPIJobConfig.versions(in: text)
        }
        if let text = texts["ai_cleanup"] {
            guard let flag = Bool(text.lowercased()) else {
                throw Fault(field: "ai_cleanup", reason: "is neither true nor false")
            }
            config.aiCleanup = flag
        }
        if let text = texts["gemini_model"] { config.geminiModel = text }
        if let text = texts["stack_id"] { config.stackID = text }
        if let (key, reason) = config.objection() {
            let bare = reason.hasPrefix(key) ? reason.dropFirst(key.count).drop { ": ".contains($0) } : reason[...]
            throw Fault(field: key == "stack" ? "stack_id" : key, reason: String(bare))
        }
        if let text = texts["callback_url"] {
            if let objection = VOPISettings.objection(toCallback: text, at: settings.url) {
                throw Fault(field: "callback_url", reason: objection)
            }
            callbackURL = text
        }
        estimatedDuration = try texts["estimated_duration"].map { text throws(Fault) in
            let seconds = try Self.number(text, "estimated_duration")
            guard seconds > 0 else { throw Fault(field: "estimated_duration", reason: "must be above 0 seconds") }
            return seconds
        }
    }

    private static func number(_ text: String, _ field: String) throws(Fault) -> Double {
        guard let number = Double(text), number.isFinite else { throw Fault(field: field, reason: "is not a number") }
        return number
    }
}

/// Which files are videos to the server, and as what they go.
enum VOPIVideoFile {
    /// Of one PUT to S3, and to R2.
    static let largest: Int64 = 5 << 30

    private static let types = [
        "mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/quicktime", "webm": "video/webm",
    ]

    /// The content type of a file with this name.
    static func contentType(_ name: FileName) -> String? { types[name.plainExtension] }

    /// Why a file cannot be sent; nil when it can.
    static func objection(_ name: FileName, size: Int64) -> DeliveryError? {
        let shown = DisplayText.escape(name.bytes)
        if contentType(name) == nil {
            return DeliveryError(
                .giveUp, .badRequest,
                "\(shown) is no video that the server takes: mp4, m4v, mov or webm; nothing was sent")
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
