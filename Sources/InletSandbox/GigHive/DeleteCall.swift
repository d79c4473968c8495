import Foundation
import Hummingbird
import InletCore

/// `/db/delete_media_files.php`: one asset by its token, or as `admin` many by their ids.
struct DeleteCall: Sendable {
    private struct Message: Decodable {
        var asset_id: Int?
        var delete_token: String?
        var asset_ids: [Int]?
    }

    private struct Done: Encodable {
        struct Database: Encodable {
            var host = "sandbox"
            var name = "sandbox"
        }
        struct Deleted: Encodable { var asset_id: Int }
        struct Failed: Encodable {
            var asset_id: Int
            var error: String
        }
        struct Results: Encodable {
            var deleted: [Deleted] = []
            var errors: [Failed] = []
        }

        var success: Bool
        var db = Database()
        var deleted_count: Int
        var error_count: Int
        var results: Results
    }

    let library: GigHiveLibrary

    func delete(_ request: Request, _ body: inout IncomingBody, user: GigHiveAccess.User?) async throws -> Response {
        guard request.method == .post else { throw GigHiveRefusal.method(allowed: "POST") }
        // What is no message names nothing, which is refused next.
        let message = try? JSONDecoder().decode(Message.self, from: try await body.whole())
        var results = Done.Results()
        for id in try ids(message, user) {
            if try library.delete(id) {
                results.deleted.append(.init(asset_id: id))
            } else {
                results.errors.append(.init(asset_id: id, error: "Not found"))
            }
        }
        return try .json(
            Done(
                success: results.errors.isEmpty, deleted_count: results.deleted.count,
                error_count: results.errors.count, results: results))
    }

    private func ids(_ message: Message?, _ user: GigHiveAccess.User?) throws(GigHiveRefusal) -> [Int] {
        if user == .admin {
            guard let ids = message?.asset_ids, !ids.isEmpty else {
                throw .delete(400, error: "Bad Request", message: "Expected JSON body with asset_ids array")
            }
            return ids
        }
        guard let id = message?.asset_id, let token = message?.delete_token else {
            throw .delete(400, error: "Bad Request", message: "Expected JSON body with asset_id and delete_token")
        }
        guard library.isToken(token, of: id) else {
            throw .delete(403, error: "Forbidden", message: "Invalid delete token")
        }
        return [id]
    }
}
