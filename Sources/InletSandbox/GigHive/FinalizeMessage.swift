import Foundation

/// The body of finalize: `upload_id` and the fields of an upload, as JSON or as a web form.
struct FinalizeMessage: Sendable {
    private enum Value: Decodable, Sendable {
        case flag(Bool)
        case text(String)
        case other

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            for kind in Self.kinds {
                // A decoder tells the type of a value by refusing all others.
                guard let found = try? kind(container) else { continue }
                self = found
                return
            }
            self = .other
        }

        private static let kinds: [@Sendable (any SingleValueDecodingContainer) throws -> Value] = [
            { .flag(try $0.decode(Bool.self)) }, { .text(try $0.decode(String.self)) },
            { .text(String(try $0.decode(Int.self))) },
        ]
    }

    private var values: [String: Value] = [:]

    /// A body that cannot be read counts as one without fields.
    init(_ body: Data, contentType: String?) {
        if contentType?.hasPrefix("application/x-www-form-urlencoded") == true {
            let text = String(decoding: body, as: UTF8.self).replacing("+", with: " ")
            for (name, value) in URIText.decodeQuery(text) ?? [] { values[name] = .text(value) }
        } else {
            // As the real one takes it.
            values = (try? JSONDecoder().decode([String: Value].self, from: body)) ?? [:]
        }
    }

    /// nil unless it is a plain id.
    var uploadID: String? {
        guard let id = text("upload_id")?.trimmingCharacters(in: .whitespacesAndNewlines), !id.isEmpty,
            id.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") })
        else { return nil }
        return id
    }

    /// What a guest must say.
    func checkGuest() throws(GigHiveRefusal) {
        guard (1...255).contains(text("label")?.utf8.count ?? 0) else {
            throw .badRequest("label must have 1 to 255 bytes")
        }
        guard case .flag(true)? = values["tos_accepted"] else { throw .badRequest("tos_accepted must be true") }
        guard (text("display_name")?.utf8.count ?? 0) <= 100 else {
            throw .badRequest("display_name has at most 100 bytes")
        }
    }

    /// The fields, with those of the upload's metadata where a field is missing or blank.
    func fields(_ metadata: [String: String], _ guest: GigHiveRules.GuestToken?) -> [String: String] {
        var fields: [String: String] = [:]
        for name in GigFields.names {
            let given = text(name)
            let isBlank = given?.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty ?? true
            fields[name] = isBlank ? metadata[name].map(GigFields.normalized) ?? given : given
        }
        guard let guest else { return fields }
        return fields.merging(
            ["event_date": guest.eventDate, "org_name": guest.orgName, "event_type": guest.eventType]) { $1 }
    }

    private func text(_ name: String) -> String? { if case .text(let text)? = values[name] { text } else { nil } }
}
