/// The body of POST `/jobs`, checked in the order and with the words of the schema and of the check after it.
struct CreateJobMessage: Sendable {
    private static let versions = ["transparent", "solid", "real", "creative"]

    /// The body as it came.
    let received: SandboxJSON
    var videoURL: String
    /// With defaults for what was left out.
    var config: SandboxJSON
    var callbackURL: String?
    var estimatedSeconds: Double?

    init(_ body: SandboxJSON) throws(VOPIRefusal) {
        guard let fields = body.fields else { throw Self.type("", "object") }
        received = body
        guard let url = fields["videoUrl"] else {
            throw .schema(
                path: "", keyword: "required", params: ["missingProperty": "videoUrl"],
                message: "must have required property 'videoUrl'")
        }
        videoURL = try Self.uri(url, "/videoUrl")
        config = try Self.config(fields["config"])
        callbackURL = nil
        if let callback = fields["callbackUrl"] {
            let address = try Self.uri(callback, "/callbackUrl")
            guard address.hasPrefix("http://") || address.hasPrefix("https://") else {
                throw .badRequest("Callback URL must use http or https protocol")
            }
            callbackURL = address
        }
        estimatedSeconds = try Self.estimate(fields["estimatedDurationSeconds"])
    }

    private static func config(_ given: SandboxJSON?) throws(VOPIRefusal) -> SandboxJSON {
        // What is left out of a config has another default than the config that is left out.
        guard let given else { return filled([:], versions: ["transparent"]) }
        guard var fields = given.fields else { throw type("/config", "object") }
        fields["fps"] = try bounded(fields["fps"], "/config/fps", 1, 30)
        fields["batchSize"] = try bounded(fields["batchSize"], "/config/batchSize", 1, 100)
        if let list = fields["commercialVersions"] {
            guard let items = list.items else { throw type("/config/commercialVersions", "array") }
            for (index, item) in items.enumerated() where !versions.contains(item.text ?? "") {
                throw .schema(
                    path: "/config/commercialVersions/\(index)", keyword: "enum",
                    params: ["allowedValues": .array(versions.map(SandboxJSON.string))],
                    message: "must be equal to one of the allowed values")
            }
        }
        fields["aiCleanup"] = try flag(fields["aiCleanup"], "/config/aiCleanup")
        if let stack = fields["stack"], stack.fields == nil {
            throw .value(
                field: "config", message: "Expected object, received \(stack.text == nil ? "other" : "string")")
        }
        return filled(fields, versions: versions)
    }

    private static func filled(_ fields: [String: SandboxJSON], versions: [String]) -> SandboxJSON {
        let defaults: [String: SandboxJSON] = [
            "fps": 10, "batchSize": 30, "commercialVersions": .array(versions.map(SandboxJSON.string)),
            "aiCleanup": true, "geminiModel": "gemini-2.0-flash",
        ]
        let known = fields.filter { defaults[$0.key] != nil || $0.key == "stack" }
        return .object(defaults.merging(known) { $1 })
    }

    private static func estimate(_ given: SandboxJSON?) throws(VOPIRefusal) -> Double? {
        guard let given else { return nil }
        let field = "estimatedDurationSeconds"
        guard let seconds = given.number else {
            throw .value(field: field, message: "Expected number, received string")
        }
        guard seconds > 0 else { throw .value(field: field, message: "Number must be greater than 0") }
        return seconds
    }

    /// A number, or a text that is one, within its bounds.
    private static func bounded(_ given: SandboxJSON?, _ path: String, _ low: Double, _ high: Double)
        throws(VOPIRefusal) -> SandboxJSON?
    {
        guard let given else { return nil }
        guard let number = given.number ?? given.text.flatMap(Double.init) else { throw type(path, "number") }
        return .number(try SchemaBounds.check(number, path, low, high))
    }

    /// True or false, or what is taken for it.
    private static func flag(_ given: SandboxJSON?, _ path: String) throws(VOPIRefusal) -> SandboxJSON? {
        switch given {
        case nil, .bool?: return given
        case "true", .number(1): return true
        case "false", .number(0), .null?: return false
        default: throw type(path, "boolean")
        }
    }

    private static func uri(_ given: SandboxJSON, _ path: String) throws(VOPIRefusal) -> String {
        guard let text = given.text ?? (given == .null ? "" : nil) else { throw type(path, "string") }
        let scheme = text.prefix { $0 != ":" }
        let isURI =
            scheme.count < text.count && scheme.first?.isLetter == true
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        guard isURI else {
            throw .schema(
                path: path, keyword: "format", params: ["format": "uri"], message: "must match format \"uri\"")
        }
        return text
    }

    private static func type(_ path: String, _ name: String) -> VOPIRefusal {
        .schema(path: path, keyword: "type", params: ["type": .string(name)], message: "must be \(name)")
    }
}

/// Limits of numbers in bodies and queries.
enum SchemaBounds {
    static func check(_ number: Double, _ path: String, _ low: Double, _ high: Double) throws(VOPIRefusal) -> Double {
        if number < low {
            throw .schema(
                path: path, keyword: "minimum", params: ["comparison": ">=", "limit": .number(low)],
                message: "must be >= \(Int(low))")
        }
        if number > high {
            throw .schema(
                path: path, keyword: "maximum", params: ["comparison": "<=", "limit": .number(high)],
                message: "must be <= \(Int(high))")
        }
        return number
    }

    /// A whole number of a query; its text is converted as the schema does it.
    static func whole(_ text: String?, _ path: String, default standard: Int, _ range: ClosedRange<Int>)
        throws(VOPIRefusal) -> Int
    {
        guard let text else { return standard }
        guard let number = Double(text) else {
            throw .schema(path: path, keyword: "type", params: ["type": "number"], message: "must be number")
        }
        let inside = try check(number, path, Double(range.lowerBound), Double(range.upperBound))
        guard let whole = Int(exactly: inside) else {
            throw .value(field: String(path.dropFirst()), message: "Expected integer, received float")
        }
        return whole
    }
}
