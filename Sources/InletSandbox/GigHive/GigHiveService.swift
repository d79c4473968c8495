import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import Synchronization
import SystemPackage

/// The table of calls, their access, and the answers of the small ones. Each layer refuses in its own form: the
/// application in JSON, the web server by a page, the tus server by a line of text.
final class GigHiveService: Sendable {
    typealias ApplicationHandler = @Sendable (inout SandboxCall) async throws -> SandboxReply

    let library: GigHiveLibrary
    let uploads: Mutex<[String: TusUpload]>
    /// A call uses the rules of its beginning.
    let rules: Mutex<GigHiveRules>
    let root: FilePath
    private let passwords: [String: Secret]

    init(root: FilePath, passwords: [String: Secret], rules: GigHiveRules) throws {
        for folder in ["tus", "finalized"] { try FileMove.makeFolder(root.appending(folder)) }
        library = try GigHiveLibrary(root: root)
        uploads = Mutex(try TusUpload.load(from: root))
        self.rules = Mutex(rules)
        (self.root, self.passwords) = (root, passwords)
    }

    var routes: [SandboxRoute<GigHiveOperation>] {
        let notTus: SandboxHandler = { _ in throw SandboxReply.tus(405, "method not allowed") }
        return [
            .init("OPTIONS /files/", .tusOptions, admitted(guests: true, options)),
            .init("OPTIONS /files/{id...}", .tusOptions, admitted(guests: true, options)),
            .init("POST /files/", .tusCreate, admitted(guests: true, create)),
            .init("PATCH /files/{id...}", .tusPatch, admitted(guests: true, patch)),
            .init("HEAD /files/{id...}", .tusHead, admitted(guests: true, head)),
            .init("DELETE /files/{id...}", .tusDelete, admitted(guests: true, terminate)),
            .init("* /files/", .other, admitted(guests: true, notTus)),
            .init("* /files/{id...}", .other, admitted(guests: true, notTus)),
            row("POST /api/uploads", .upload, admitted(guests: true, upload)),
            row("POST /api/uploads.php", .upload, admitted(guests: false, upload)),
            row("POST /api/uploads/finalize", .finalize, admitted(guests: true, finalize)),
            row("GET /api/uploads/{id}", .asset, admitted(guests: false, asset)),
            row("GET /api/upload-token.php", .guest, guestToken),
            .init("* /db/delete_media_files.php", .delete, admitted(guests: false, delete)),
            row("*", .other) { _ in throw SandboxReply.pathNotFound },
        ]
    }

    /// A call of the application.
    private func row(
        _ pattern: String, _ operation: GigHiveOperation, _ handle: @escaping ApplicationHandler
    ) -> SandboxRoute<GigHiveOperation> {
        SandboxRoute(pattern, operation) { call in
            do {
                return Response(Self.shown(try await handle(&call)))
            } catch let refusal as SandboxReply {
                throw Self.shown(refusal)
            }
        }
    }

    /// The application's JSON may be cached.
    private static func shown(_ reply: SandboxReply) -> SandboxReply {
        guard reply.fields["Content-Type"] == "application/json" else { return reply }
        var reply = reply
        reply.fields["Cache-Control"] = "public, max-age=86400"
        return reply
    }
}

// MARK: - Who asks

extension GigHiveService {
    /// Calls for `admin` and `uploader`. With `guests`, also for requests with any `X-Upload-Token`.
    private func admitted<Answer>(
        guests: Bool, _ handle: @escaping @Sendable (inout SandboxCall) async throws -> Answer
    ) -> @Sendable (inout SandboxCall) async throws -> Answer {
        { [self] call in
            if guests, call.fields["X-Upload-Token"] != nil { return try await handle(&call) }
            guard let user = user(call), user != "viewer" else {
                var refusal = SandboxReply.page(401, "Unauthorized")
                refusal.fields["WWW-Authenticate"] = "Basic realm=\"GigHive Upload\""
                throw refusal
            }
            return try await handle(&call)
        }
    }

    /// The user who logs in by HTTP Basic (RFC 7617) with the right password.
    private func user(_ call: SandboxCall) -> String? {
        guard let given = call.fields[.authorization], given.hasPrefix("Basic "),
            let data = Data(base64Encoded: String(given.dropFirst(6)))
        else { return nil }
        let halves = String(decoding: data, as: UTF8.self)
            .split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard halves.count == 2, let password = passwords[halves[0]],
            SigningSecret.areEqual(halves[1], password.reveal())
        else { return nil }
        return halves[0]
    }

    /// The guest of the token; nil without one.
    func guest(_ token: String?, _ rules: GigHiveRules) throws(SandboxReply) -> GigHiveRules.UploadToken? {
        guard let token else { return nil }
        guard token.utf8.count <= 128 else { throw .gigHive(400, error: "invalid token") }
        guard let known = rules.guestTokens.first(where: { SigningSecret.areEqual($0.token.reveal(), token) }) else {
            throw .gigHive(404, error: "invalid or expired")
        }
        return known
    }

    private func guestToken(_ call: inout SandboxCall) throws -> SandboxReply {
        guard let token = call.query("token"), token.utf8.count <= 128,
            let guest = try guest(token, rules.withLock { $0 })
        else {
            throw SandboxReply.gigHive(404, error: "invalid or expired")
        }
        return try .json(["event_date": guest.eventDate, "org_name": guest.orgName, "event_type": guest.eventType])
    }
}

// MARK: - Assets

extension GigHiveService {
    private func asset(_ call: inout SandboxCall) throws -> SandboxReply {
        guard let asset = Int(call["id"]).flatMap(library.asset) else { throw SandboxReply.pathNotFound }
        return try .json(asset.told.merging(["file_ext": .string(asset.path.extension ?? "")]) { $1 })
    }

    /// One asset by its token, or many by their ids as `admin`.
    private func delete(_ call: inout SandboxCall) async throws -> Response {
        guard call.request.method == .post else {
            var refusal = try Self.undeleted(405, "Method Not Allowed", nil)
            refusal.fields["Allow"] = "POST"
            throw refusal
        }
        // An invalid message names nothing; the next check refuses it.
        let message = try? JSON.decode(try await call.body.whole(), as: SandboxJSON.self)
        var (deleted, errors): ([SandboxJSON], [SandboxJSON]) = ([], [])
        for id in try ids(message, isAdmin: user(call) == "admin") {
            if try library.delete(id) {
                deleted.append(["asset_id": .init(id)])
            } else {
                errors.append(["asset_id": .init(id), "error": "Not found"])
            }
        }
        return try .json(
            [
                "success": .bool(errors.isEmpty), "db": ["host": "sandbox", "name": "sandbox"],
                "deleted_count": .init(deleted.count), "error_count": .init(errors.count),
                "results": ["deleted": .array(deleted), "errors": .array(errors)],
            ] as SandboxJSON)
    }

    private func ids(_ message: SandboxJSON?, isAdmin: Bool) throws -> [Int] {
        let needed = isAdmin ? "asset_ids array" : "asset_id and delete_token"
        let noMessage = try Self.undeleted(400, "Bad Request", "Expected JSON body with \(needed)")
        if isAdmin {
            let ids = (message?["asset_ids"]?.items ?? []).compactMap { $0.number.flatMap(Int.init(exactly:)) }
            guard !ids.isEmpty else { throw noMessage }
            return ids
        }
        guard let id = message?["asset_id"]?.number.flatMap(Int.init(exactly:)),
            let token = message?["delete_token"]?.text
        else { throw noMessage }
        guard library.isToken(token, of: id) else {
            throw try Self.undeleted(403, "Forbidden", "Invalid delete token")
        }
        return [id]
    }

    private static func undeleted(_ status: Int, _ error: String, _ message: String?) throws -> SandboxReply {
        var fields: [String: SandboxJSON] = ["error": .string(error), "success": false]
        fields["message"] = message.map(SandboxJSON.string)
        return try .json(fields, status: status)
    }
}

extension SandboxReply {
    static func badRequest(_ message: String) -> Self { .gigHive(400, error: "Bad Request", message: message) }
    static func serverError(_ message: String) -> Self { .gigHive(500, error: "Server Error", message: message) }
    /// Refusals of the database.
    static func sql(_ state: String, _ message: String) -> Self { serverError("SQLSTATE[\(state)]: \(message)") }
    static let pathNotFound = Self.gigHive(404, error: "Not Found")
}
