/// Bodies of the control calls, as the three dialects have them on the wire. Names are those of the JSON.
enum SpiralMessages {
    /// The seed dialect sends `part_count`; r2 and v1 send `parts` and a content type.
    struct Create: Decodable {
        var key: String
        var part_count: Int?
        var parts: Int?
        var content_type: String?
    }

    struct PartURL: Codable {
        var part_number: Int
        var url: String
    }

    struct CreatedSeed: Encodable {
        var upload_id: String
        var key: String
        var parts: [PartURL]
    }

    struct Created: Encodable {
        var upload_id: String
        var part_urls: [PartURL]
    }

    struct Complete: Decodable {
        struct Part: Decodable {
            var part_number: Int
            var etag: String
        }

        var key: String
        var upload_id: String
        var parts: [Part]
    }

    struct ObjectURL: Encodable { var object_url: String }

    struct Abort: Decodable {
        var key: String
        var upload_id: String
    }

    struct Presign: Decodable {
        var key: String
        var content_type: String
    }

    struct URLAndKey: Encodable {
        var url: String
        var key: String
    }

    struct Empty: Encodable {}

    struct Failure: Encodable {
        var error: String
        var code: String
    }
}
