import InletCore

// MARK: - Refusals

extension VOPIService {
    static let internalError = SandboxReply.vopi(
        500, error: "INTERNAL_ERROR", message: "An unexpected error occurred")

    /// - Parameter isBare: Without `statusCode`, as from code that replies directly; the error handler adds it.
    static func refuse(
        _ status: Int, _ code: String, _ message: String, isBare: Bool = false, details: SandboxJSON? = nil
    ) throws -> Never {
        var body: [String: SandboxJSON] = ["error": .string(code), "message": .string(message)]
        if !isBare { body["statusCode"] = .number(Double(status)) }
        body["details"] = details
        throw try SandboxReply.json(body, status: status)
    }

    static func refuseLogin(_ message: String) throws -> Never {
        try refuse(401, "UNAUTHORIZED", message, isBare: true)
    }

    /// A body or query that breaks the schema; the first error only.
    static func refuseSchema(_ path: String, _ keyword: String, _ limit: SandboxJSON) throws -> Never {
        let text = limit.text ?? limit.number.map { String(Int($0)) } ?? ""
        let (name, message) =
            switch keyword {
            case "type": ("type", "must be \(text)")
            case "format": ("format", "must match format \"\(text)\"")
            case "required": ("missingProperty", "must have required property '\(text)'")
            case "enum": ("allowedValues", "must be equal to one of the allowed values")
            case "minimum": ("limit", "must be >= \(text)")
            case "maximum": ("limit", "must be <= \(text)")
            default: ("limit", "must NOT have more than \(text) characters")
            }
        var params = [name: limit]
        if keyword == "minimum" { params["comparison"] = ">=" }
        if keyword == "maximum" { params["comparison"] = "<=" }
        let error: SandboxJSON = [
            "instancePath": .string(path), "schemaPath": .string("#/\(keyword)"), "keyword": .string(keyword),
            "params": .object(params), "message": .string(message),
        ]
        try refuse(400, "VALIDATION_ERROR", "Request validation failed", details: [error])
    }

    /// Faults that pass the schema and fail the second check.
    static func refuseValue(_ field: String, _ message: String) throws -> Never {
        let details: [String: SandboxJSON] = ["_errors": [], field: ["_errors": [.string(message)]]]
        try refuse(422, "VALIDATION_ERROR", "Validation failed", details: .object(details))
    }

    static func check(_ text: String?, _ path: String, isOneOf known: [String]) throws {
        if let text, known.contains(text) { return }
        try refuseSchema(path, "enum", .array(known.map(SandboxJSON.string)))
    }

    private static func check(_ number: Double, _ path: String, _ range: ClosedRange<Int>) throws -> Double {
        let (low, high) = (Double(range.lowerBound), Double(range.upperBound))
        if number < low { try refuseSchema(path, "minimum", .number(low)) }
        if number > high { try refuseSchema(path, "maximum", .number(high)) }
        return number
    }

    /// A whole number; its text is converted by the schema's rules.
    static func whole(_ name: String, _ text: String?, default standard: Int, _ range: ClosedRange<Int>) throws -> Int {
        guard let text else { return standard }
        guard let number = Double(text) else { try refuseSchema("/" + name, "type", "number") }
        guard let whole = Int(exactly: try check(number, "/" + name, range)) else {
            try refuseValue(name, "Expected integer, received float")
        }
        return whole
    }
}

// MARK: - Orders

/// Bodies are checked in the order and with the words of the schema, and then of the second check.
extension VOPIService {
    /// The lifetime of presigned URLs, in seconds.
    static let lifetimes = 60...86_400
    private static let versions = ["transparent", "solid", "real", "creative"]

    /// The body of POST `/uploads/presign`: the text behind the name's last dot, whatever the type is, and seconds.
    static func presignOrder(_ body: SandboxJSON) throws -> (ending: String, lifetime: Int) {
        guard let fields = body.fields else { try refuseSchema("", "type", "object") }
        let name = fields["filename"]?.text ?? ""
        guard name.count <= 255 else { try refuseSchema("/filename", "maxLength", 255) }
        if let type = fields["contentType"] {
            try check(type.text, "/contentType", isOneOf: ["video/mp4", "video/quicktime", "video/webm"])
        }
        let wanted = fields["expiresIn"].map { $0.text ?? String($0.number ?? .nan) }
        let lifetime = try whole("expiresIn", wanted, default: 3600, lifetimes)
        let ending = name.wholeMatch(of: /(?s).*\.([A-Za-z0-9]+)/)?.1.lowercased()
        return (ending ?? "mp4", lifetime)
    }

    /// The body of POST `/jobs`: the job's fields, and the declared length of its video.
    static func draft(_ body: SandboxJSON, _ now: WallTime) throws -> (job: VOPIJob, seconds: Double?) {
        guard let fields = body.fields else { try refuseSchema("", "type", "object") }
        guard let given = fields["videoUrl"] else { try refuseSchema("", "required", "videoUrl") }
        let videoURL = try uri(given, "/videoUrl")
        let config = try config(fields["config"])
        let callback = try fields["callbackUrl"].map { try uri($0, "/callbackUrl") }
        if let callback, !callback.hasPrefix("http://"), !callback.hasPrefix("https://") {
            try refuse(400, "BAD_REQUEST", "Callback URL must use http or https protocol")
        }
        let (field, seconds) = ("estimatedDurationSeconds", fields["estimatedDurationSeconds"])
        if let seconds {
            guard let number = seconds.number else { try refuseValue(field, "Expected number, received string") }
            guard number > 0 else { try refuseValue(field, "Number must be greater than 0") }
        }
        let job = VOPIJob(
            received: body, videoURL: videoURL, config: config, callbackURL: callback, created: now, updated: now,
            moved: now)
        return (job, seconds?.number)
    }

    private static func config(_ given: SandboxJSON?) throws -> SandboxJSON {
        var config: [String: SandboxJSON] = [
            "fps": 10, "batchSize": 30, "commercialVersions": .array(versions.map(SandboxJSON.string)),
            "aiCleanup": true, "geminiModel": "gemini-2.0-flash",
        ]
        guard let given else {
            // A field that a config leaves out has another default than in a config that is left out.
            config["commercialVersions"] = ["transparent"]
            return .object(config)
        }
        guard let fields = given.fields else { try refuseSchema("/config", "type", "object") }
        for (name, value) in fields where config[name] != nil || name == "stack" { config[name] = value }
        for (name, range) in [("fps", 1...30), ("batchSize", 1...100)] {
            guard let value = fields[name] else { continue }
            // A number, or a text with one.
            guard let number = value.number ?? value.text.flatMap(Double.init) else {
                try refuseSchema("/config/" + name, "type", "number")
            }
            config[name] = .number(try check(number, "/config/" + name, range))
        }
        if let list = fields["commercialVersions"] {
            guard let items = list.items else { try refuseSchema("/config/commercialVersions", "type", "array") }
            for (index, item) in items.enumerated() {
                try check(item.text, "/config/commercialVersions/\(index)", isOneOf: versions)
            }
        }
        // True or false, or an accepted substitute.
        switch fields["aiCleanup"] {
        case nil, .bool?: break
        case "true", .number(1): config["aiCleanup"] = true
        case "false", .number(0), .null?: config["aiCleanup"] = false
        default: try refuseSchema("/config/aiCleanup", "type", "boolean")
        }
        if let stack = fields["stack"], stack.fields == nil {
            try refuseValue("config", "Expected object, received \(stack.text == nil ? "other" : "string")")
        }
        return .object(config)
    }

    private static func uri(_ given: SandboxJSON, _ path: String) throws -> String {
        guard let text = given.text ?? (given == .null ? "" : nil) else { try refuseSchema(path, "type", "string") }
        let scheme = text.prefix { $0 != ":" }
        guard scheme.count < text.count, scheme.first?.isLetter == true,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { try refuseSchema(path, "format", "uri") }
        return text
    }
}

// MARK: - Answers

/// Unset values read `{}` or `""`, never null. An `origin` comes before the keys of objects.
extension VOPIJob {
    /// The answer to a status request; other answers contain more.
    var answer: [String: SandboxJSON] {
        [
            "id": .string(id), "status": .string(status), "progress": progressAnswer,
            "createdAt": .string(created.rfc3339), "updatedAt": .string(updated.rfc3339),
        ]
    }

    private var progressAnswer: SandboxJSON {
        guard progress == .full, step != .waiting else { return .empty }
        let percentage = [0, 5, 20, 40, 60, 68, 81, 100][position]
        return [
            "step": .string(step.rawValue), "percentage": .number(Double(percentage)),
            "message": .string("The sandbox is at \(step.rawValue)."),
            "totalSteps": .number(Double(Step.allCases.count - 1)), "currentStep": .number(Double(position)),
        ]
    }

    func full(_ generation: VOPIRules.Generation, origin: String) -> SandboxJSON {
        let isTold = generation == .bearer
        var result = SandboxJSON.empty
        if isTold, completed != nil {
            let links = frames.map { SandboxJSON.string(origin + $0.object.key) }
            result = [
                "variantsDiscovered": 1, "framesAnalyzed": .number(Double(links.count)), "finalFrames": .array(links),
                "commercialImages": images { .string(origin + $0.key) },
            ]
        }
        let more: [String: SandboxJSON] = [
            "videoUrl": .string(videoURL), "config": isTold ? config : .empty, "error": .string(error ?? ""),
            "result": result, "startedAt": "", "completedAt": .string(completed?.rfc3339 ?? ""),
        ]
        return .object(answer.merging(more) { $1 })
    }

    var frames: [VOPISandbox.ResultImage] { pictures.filter { $0.version == nil } }

    /// The images by key and version. A key stays, empty, if all its links are left out.
    func images(_ link: (StoredObject) -> SandboxJSON?) -> SandboxJSON {
        var keys: [String: [String: SandboxJSON]] = [:]
        for picture in pictures {
            guard let version = picture.version else { continue }
            keys[picture.name, default: [:]][version] = link(picture.object)
        }
        return .object(keys.mapValues(SandboxJSON.object))
    }

    func listFrames(_ origin: String, isFinal: Bool) -> SandboxJSON {
        let own: [String: SandboxJSON] =
            isFinal
            ? ["variantDescription": "", "obstructions": [:], "backgroundRecommendations": [:]]
            : ["videoId": .string("video-\(id)"), "scores": [:], "isBestPerSecond": true, "isFinalSelection": true]
        let rows = frames.enumerated().map { index, frame in
            let fields: [String: SandboxJSON] = [
                "frameId": .string(frame.name), "timestamp": .number(Double(index) + 0.5),
                "s3Url": .string(origin + frame.object.key), "productId": "product_1", "variantId": "hero",
                "angleEstimate": "front",
            ]
            return row("row-\(index)", fields.merging(own) { $1 })
        }
        return .array(rows)
    }

    /// A row of a table about this job.
    private func row(_ key: String, _ fields: [String: SandboxJSON]) -> SandboxJSON {
        .object(
            fields.merging(["id": .string(key), "jobId": .string(id), "createdAt": .string(created.rfc3339)]) { $1 })
    }

    /// The keys differ from those of the result.
    func groupImages(_ origin: String) -> SandboxJSON {
        let keys = images { .string(origin + $0.key) }.fields ?? [:]
        return .object(Dictionary(keys.map { ("product_1_\($0.key)", $0.value) }) { $1 })
    }
}

extension VOPIService {
    /// The result of analysing a video's sound: the product, and its texts for three shops.
    static func metadata(of video: Digest, _ now: WallTime) -> SandboxJSON {
        let name = "Product \(video.hex.prefix(8))"
        let text = "Made by the sandbox from the video \(video.hex)."
        return [
            "transcript": .string("This is \(name)."),
            "product": [
                "title": .string(name), "description": .string(text),
                "bulletPoints": [.string("Video \(video.hex.prefix(12))")],
                "confidence": ["overall": 85, "title": 90, "description": .number(80.5)],
                "extractedFromAudio": true,
            ],
            "platforms": [
                "shopify": ["title": .string(name), "body_html": .string("<p>\(text)</p>"), "tags": ["sandbox"]],
                "amazon": ["item_name": .string(name), "bullet_point": [.string(text)]],
                "ebay": ["title": .string(String(name.prefix(80))), "description": .string(text)],
            ],
            "extractedAt": .string(now.rfc3339), "pipelineVersion": "2.0.0",
        ]
    }
}
