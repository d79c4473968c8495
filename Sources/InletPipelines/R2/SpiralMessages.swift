internal import FoundationEssentials

/// Bodies of the API's calls and answers, lenient where the generations differ: `parts` or `part_urls`, `object_url` or
/// `url`, a key or none.
enum SpiralMessages {
    struct Create: Encodable {
        var key: String
        var contentType: String?
        var parts: Int?
        var partCount: Int?

        enum CodingKeys: String, CodingKey {
            case key
            case contentType = "content_type"
            case parts
            case partCount = "part_count"
        }
    }

    struct PartURL: Decodable {
        var number: Int
        var url: String

        enum CodingKeys: String, CodingKey {
            case number = "part_number"
            case url
        }
    }

    struct Created: Decodable {
        var uploadID: String
        var key: String?
        var parts: [PartURL]?
        var partURLs: [PartURL]?

        enum CodingKeys: String, CodingKey {
            case uploadID = "upload_id"
            case key
            case parts
            case partURLs = "part_urls"
        }
    }

    struct Part: Encodable {
        var number: Int
        var etag: String

        enum CodingKeys: String, CodingKey {
            case number = "part_number"
            case etag
        }
    }

    struct Complete: Encodable {
        var key: String
        var uploadID: String
        var parts: [Part]?

        enum CodingKeys: String, CodingKey {
            case key
            case uploadID = "upload_id"
            case parts
        }
    }

    struct Completed: Decodable {
        var objectURL: String?
        var url: String?
        var key: String?

        enum CodingKeys: String, CodingKey {
            case objectURL = "object_url"
            case url
            case key
        }
    }

    struct Presign: Encodable {
        var key: String
        var contentType: String

        enum CodingKeys: String, CodingKey {
            case key
            case contentType = "content_type"
        }
    }

    struct Location: Decodable {
        var url: String
    }

    static func encode(_ message: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(message))
    }

    static func decode<Message: Decodable>(_ body: [UInt8]) throws -> Message {
        try JSONDecoder().decode(Message.self, from: Data(body))
    }
}
