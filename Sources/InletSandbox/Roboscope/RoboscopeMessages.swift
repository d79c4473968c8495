import Foundation

/// Bodies of requests as they are on the wire; names are those of the JSON. In a PATCH what is absent or null stays as
/// it was.
enum RoboscopeMessages {
    struct Space: Decodable {
        var key: String?
        var name: String?
        var description: String?
        var model_glb_url: String?
        var model_usdc_url: String?
        var preview_url: String?
        var scan_url: String?
        var meta: SandboxJSON?
    }

    enum SessionType: String, Decodable {
        case inspection
        case repair
        case other
    }

    enum Status: String, Decodable {
        case draft
        case active
        case done
        case archived
    }

    struct Session: Decodable {
        var space_id: String?
        var session_type: SessionType?
        var status: Status?
        var started_at: String?
        var completed_at: String?
        var meta: SandboxJSON?
        var version: Int64?
    }

    struct Marker: Decodable {
        var work_session_id: String?
        var label: String?
        var p1: [Double]?
        var p2: [Double]?
        var p3: [Double]?
        var p4: [Double]?
        var color: String?
        var meta: SandboxJSON?
        var custom_props: SandboxJSON?
        var version: Int64?

        /// Those that were given.
        var corners: [[Double]?] { [p1, p2, p3, p4] }
    }

    struct Bulk: Decodable { var markers: [Marker] }
    struct User: Decodable { var user_id: String }

    struct Lock: Decodable {
        var token: String?
        var ttl_seconds: Int64?
    }

    /// - Throws: 400 for what is no JSON, 422 for JSON that is not the message.
    static func decode<Message: Decodable>(_ type: Message.Type, _ body: Data) throws(RoboscopeRefusal) -> Message {
        do {
            return try JSONDecoder().decode(type, from: body)
        } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
            throw RoboscopeRefusal(status: 400, message: "Failed to parse the request body as JSON")
        } catch {
            throw .invalid("Failed to deserialize the JSON body into the target type")
        }
    }
}

/// Bodies of answers.
enum RoboscopeAnswers {
    struct Marker: Encodable {
        var id: String
        var work_session_id: String
        var label: String?
        var p1: [Double]
        var p2: [Double]
        var p3: [Double]
        var p4: [Double]
        var color: String
        var meta: SandboxJSON?
        var custom_props: SandboxJSON
        var version: Int64
        var created_at: String
        var updated_at: String
    }
}
