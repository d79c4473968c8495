package import InletCore
package import InletTransfer

/// A job's status as reported.
package enum VOPIStatus: Sendable, Hashable {
    case pending
    /// A step of a job that runs, as an older server names it; also every word that is not known.
    case running(String)
    case completed
    /// May still turn into `completed`: the server tries up to three times.
    case failed
    /// May still turn into `completed`: a job that runs is not stopped.
    case cancelled

    package init(_ text: String?) {
        switch text {
        case nil, "pending": self = .pending
        case "completed": self = .completed
        case "failed": self = .failed
        case "cancelled": self = .cancelled
        case .some(let other): self = .running(other)
        }
    }

    package var text: String {
        switch self {
        case .pending: "pending"
        case .running(let step): step
        case .completed: "completed"
        case .failed: "failed"
        case .cancelled: "cancelled"
        }
    }
}

/// How far a job is, where the server says so; the newer one says nothing.
package struct VOPIProgress: Sendable, Equatable {
    /// 0 to 100.
    package var percentage: Double
    package var step: String?
    package var message: String?

    /// nil for `{}` and what says neither a step nor a percentage.
    package init?(_ value: VOPIValue) {
        step = value["step"].text
        message = value["message"].text
        let percentage = value["percentage"].number
        guard step != nil || message != nil || percentage != nil else { return nil }
        self.percentage = min(max(percentage ?? 0, 0), 100)
    }
}

/// The results of a job.
package struct VOPIResult: Sendable, Equatable {
    package var finalFrames: [String]
    /// Variant, then version, then URL.
    package var commercialImages: [String: [String: String]]

    /// nil for `{}`: no result yet.
    package init?(_ value: VOPIValue) {
        guard value.objectIfSet != nil else { return nil }
        finalFrames = value["finalFrames"].list.compactMap(\.text)
        commercialImages = value["commercialImages"].links
    }

    /// Pictures of both kinds; one that is named twice is one file.
    package var count: Int { Set(finalFrames).count + commercialImages.values.reduce(0) { $0 + $1.count } }
}

/// A job as one of the calls tells it; what a call does not tell is nil.
package struct VOPIJob: Sendable, Equatable {
    package var id: String
    package var status: VOPIStatus
    /// The `publicURL` of its upload.
    package var videoURL: String?
    /// As the server understood it, defaults filled in.
    package var config: VOPIValue?
    package var progress: VOPIProgress?
    package var result: VOPIResult?
    /// Of the last try that failed; a later success leaves it.
    package var error: String?
    package var createdAt: WallTime?
    /// Does not move while a job runs; moves with every failed try.
    package var updatedAt: WallTime?
    package var completedAt: WallTime?
    /// All that the server said, unknown fields too.
    package var raw: VOPIValue

    /// nil without an id, and without a status where `asked` stands for the id.
    package init?(_ value: VOPIValue, asked: String? = nil) {
        guard let id = value["id"].text ?? (value["status"].text == nil ? nil : asked) else { return nil }
        self.id = id
        status = VOPIStatus(value["status"].text)
        videoURL = value["videoUrl"].text
        config = value["config"].objectIfSet
        progress = VOPIProgress(value["progress"])
        result = VOPIResult(value["result"])
        error = value["error"].text
        createdAt = value["createdAt"].time
        updatedAt = value["updatedAt"].time
        completedAt = value["completedAt"].time
        raw = value
    }

    /// Takes our own credentials out of what people are shown of it.
    mutating func hide(by redactor: Redactor) {
        error = error.map { redactor.redacted($0) }
        if var said = progress {
            said.step = said.step.map { redactor.redacted($0) }
            said.message = said.message.map { redactor.redacted($0) }
            progress = said
        }
        if case .running(let step) = status { status = .running(redactor.redacted(step)) }
    }
}

extension VOPIJob {
    /// One page of the caller's jobs, newest first, and how many jobs all pages have. Pages shift while jobs are added.
    package typealias Page = (jobs: [VOPIJob], total: Int?)

    /// nil without a list: an answer that says nothing must not read as "no such job".
    static func page(_ value: VOPIValue) -> Page? {
        guard value["jobs"].isList else { return nil }
        return (value["jobs"].list.compactMap { VOPIJob($0) }, value["total"].integer)
    }
}

/// Presigned links to what a job made: the answer to `GET /jobs/:id/download-urls`. Short-lived; nothing is paged.
package struct VOPIDownloads: Sendable {
    /// The ids are not unique.
    package var frames: [(frameID: String, link: HTTPURL)]
    /// Variant, then version.
    package var images: [String: [String: HTTPURL]]
    /// Kept as it is: transcript, product, platforms.
    package var productMetadata: VOPIValue?
    /// Whether the answer says what there is of it, if only that there is none.
    var saysMetadata: Bool
    /// Links that were not taken: their host or scheme is refused, with the reason.
    package var refused: [String]

    /// nil when the answer has neither frames nor images nor a job's id.
    init?(_ value: VOPIValue, rules: URLRules) {
        guard value["frames"].isList || value["commercialImages"].isObject || value["jobId"].text != nil else {
            return nil
        }
        var refused: [String] = []
        func link(_ text: String) -> HTTPURL? {
            do throws(TransferError) {
                return try HTTPURL(text, rules: rules)
            } catch {
                refused.append(error.reason)
                return nil
            }
        }
        var frames: [(frameID: String, link: HTTPURL)] = []
        for frame in value["frames"].list {
            guard let url = frame["downloadUrl"].text.flatMap({ link($0) }) else { continue }
            frames.append((frame["frameId"].text ?? "frame", url))
        }
        var images: [String: [String: HTTPURL]] = [:]
        for (variant, versions) in value["commercialImages"].links {
            images[variant] = versions.compactMapValues { link($0) }
        }
        self.frames = frames
        self.images = images
        self.refused = refused
        productMetadata = value["productMetadata"].objectIfSet
        saysMetadata = value.members.keys.contains("productMetadata")
    }
}

/// Of a frame of a video that the server looked at.
extension VOPIValue {
    /// Obstacles in the picture, in words: `hand, glare: a hand at the left; removable`.
    package var obstructionText: String? {
        guard let obstructions = self["obstructions"].unlessEmpty else { return nil }
        guard obstructions["has_obstruction"].boolean != false else { return "none" }
        let types = obstructions["obstruction_types"].list.compactMap(\.text).joined(separator: ", ")
        let words = [types, obstructions["obstruction_description"].text ?? ""].filter { !$0.isEmpty }
        let isRemovable = obstructions["removable_by_ai"].boolean == true
        return (words.isEmpty ? "yes" : words.joined(separator: ": ")) + (isRemovable ? "; removable" : "")
    }

    /// Possible backgrounds, for each kind of picture: `solid: white (#FFFFFF); real: a kitchen; creative: on a cloud`.
    package var backgroundText: String? {
        guard let recommended = self["backgroundRecommendations"].unlessEmpty else { return nil }
        let (name, color) = (recommended["solid_color_name"].text, recommended["solid_color"].text)
        let solid = name.map { name in color.map { "\(name) (\($0))" } ?? name } ?? color
        let kinds = [
            ("solid", solid), ("real", recommended["real_life_setting"].text),
            ("creative", recommended["creative_shot"].text),
        ]
        let texts = kinds.compactMap { kind, text in text.map { "\(kind): \($0)" } }
        return texts.isEmpty ? nil : texts.joined(separator: "; ")
    }
}

/// JSON that is read leniently: the server writes `{}`, `""` or 0 where a nullable field is not set, and its
/// generations differ in what they send. Nothing is lost: `plain` is what came.
package struct VOPIValue: Sendable, Equatable {
    package let plain: JSONValue

    package init(_ plain: JSONValue) { self.plain = plain }

    package static let null = VOPIValue(.null)

    /// The value of `body`; nil when it is empty or no JSON.
    package init?(_ body: [UInt8]) {
        guard let value = JSON.value(body) else { return nil }
        plain = value
    }

    /// The member called `name`; `.null` where there is none.
    package subscript(name: String) -> VOPIValue { VOPIValue(plain[name] ?? .null) }

    /// A text that is set: nil for `""`, `{}`, null and every other kind.
    package var text: String? { plain.string.flatMap { $0.isEmpty ? nil : $0 } }

    /// A number, also one that is written as text; nil for every other kind.
    package var number: Double? {
        plain.double ?? plain.string.flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// A whole number; fractions are cut off.
    package var integer: Int? { number.flatMap { Int(exactly: $0.rounded(.towardZero)) } }

    package var boolean: Bool? { plain.boolean }

    /// The elements; none for every other kind.
    package var list: [VOPIValue] { plain.array.map { $0.map { VOPIValue($0) } } ?? [] }

    package var isList: Bool { plain.array != nil }

    /// The members; none for every other kind.
    package var members: [String: VOPIValue] { plain.object.map { $0.mapValues { VOPIValue($0) } } ?? [:] }

    package var isObject: Bool { plain.object != nil }

    /// A moment (ISO 8601, with or without a fraction of the second); nil for `""` and what is none.
    package var time: WallTime? { text.flatMap { WallTime(rfc3339: $0) } }

    /// The value where it is set: nil for null, `{}`, `[]` and `""`.
    package var unlessEmpty: VOPIValue? {
        switch plain {
        case .null, .object([:]), .array([]), .string(""): nil
        default: self
        }
    }

    /// Whether it is `{}` or `[]`: either stands for nothing.
    package var isEmptyOfAnyKind: Bool { (isObject || isList) && unlessEmpty == nil }

    /// The value where it is an object with members; nil for `{}`, and for the 0 and `""` that also stand for "not set".
    package var objectIfSet: VOPIValue? { isObject ? unlessEmpty : nil }

    /// Two levels of names over texts; what is not set is left out, an inner level that is empty stays.
    var links: [String: [String: String]] {
        members.filter { $0.value.isObject }.mapValues { $0.members.compactMapValues(\.text) }
    }
}
