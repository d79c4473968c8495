/// The body of POST `/uploads/presign`, checked as the schema does it.
struct PresignMessage: Sendable {
    private static let types = ["video/mp4", "video/quicktime", "video/webm"]

    /// Of the key: what stands behind the name's last dot, whatever the content type is.
    var ending: String
    /// Seconds.
    var lifetime: Int

    init(_ body: SandboxJSON) throws(VOPIRefusal) {
        guard let fields = body.fields else {
            throw .schema(path: "", keyword: "type", params: ["type": "object"], message: "must be object")
        }
        let name = fields["filename"]?.text ?? ""
        guard name.count <= 255 else {
            throw .schema(
                path: "/filename", keyword: "maxLength", params: ["limit": 255],
                message: "must NOT have more than 255 characters")
        }
        if let type = fields["contentType"], !Self.types.contains(type.text ?? "") {
            throw .schema(
                path: "/contentType", keyword: "enum",
                params: ["allowedValues": .array(Self.types.map(SandboxJSON.string))],
                message: "must be equal to one of the allowed values")
        }
        let wanted = fields["expiresIn"].map { $0.text ?? String($0.number ?? .nan) }
        lifetime = try SchemaBounds.whole(wanted, "/expiresIn", default: 3600, 60...86_400)
        ending = Self.ending(of: name)
    }

    private static func ending(of name: String) -> String {
        guard let dot = name.lastIndex(of: ".") else { return "mp4" }
        let ending = name[name.index(after: dot)...].lowercased()
        return ending.wholeMatch(of: /[a-z0-9]+/) == nil ? "mp4" : ending
    }
}
