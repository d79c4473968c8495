import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// What is answered instead of the result, in the voice of the layer that refuses.
enum GigHiveRefusal: Error, Equatable {
    /// The application: JSON with `error`, and `message` where there is one.
    case json(Int, error: String, message: String?)
    /// 409: the same bytes are in the same event.
    case duplicate(asset: Int, sha256: String)
    /// The web server or its firewall: a page.
    case page(Int, String)
    /// The tus server: `ERR_CODE: text`.
    case tus(Int, String)
    /// 401, with the realm that asks for a login.
    case login
    /// The call exists, but not by this method: JSON, and `Allow`.
    case method(allowed: String)
    /// The delete call: JSON with `success: false`.
    case delete(Int, error: String, message: String)

    static func badRequest(_ message: String) -> Self { .json(400, error: "Bad Request", message: message) }
    static func serverError(_ message: String) -> Self { .json(500, error: "Server Error", message: message) }
    static func data(_ state: String, _ message: String) -> Self { serverError("SQLSTATE[\(state)]: \(message)") }

    static let tusNotFound = Self.tus(404, "ERR_UPLOAD_NOT_FOUND: upload not found")
    static let pathNotFound = Self.json(404, error: "Not Found", message: nil)
}

/// Bodies and heads of answers.
enum GigHiveAnswer {
    private struct Failure: Encodable {
        var error: String
        var message: String?
        var success: Bool?
    }

    private struct Duplicate: Encodable {
        var error = "Duplicate Upload"
        var message = "A file with the same checksum_sha256 already exists on the server."
        var existing_asset_id: Int
        var checksum_sha256: String
    }

    /// - Parameter accept: The request's; a client that takes pages gets one from every POST of the application.
    static func json(_ value: some Encodable, status: Int, accept: String?) throws -> SandboxReply {
        var reply = try SandboxReply.json(value, status: status)
        if let accept, accept.contains("text/html") {
            let text = try JSONEncoder().encode(value)
            let body = "<!doctype html><pre>\(String(decoding: text, as: UTF8.self).escapedForXML)</pre>"
            reply = SandboxReply(status, type: "text/html; charset=iso-8859-1", body: body)
        }
        reply.fields["Cache-Control"] = "public, max-age=86400"
        return reply
    }

    static func refusal(_ refusal: GigHiveRefusal, accept: String?) throws -> SandboxReply {
        switch refusal {
        case .json(let status, let error, let message):
            return try json(Failure(error: error, message: message), status: status, accept: accept)
        case .duplicate(let asset, let sha256):
            let body = Duplicate(existing_asset_id: asset, checksum_sha256: sha256)
            return try json(body, status: 409, accept: accept)
        case .delete(let status, let error, let message):
            return try .json(Failure(error: error, message: message, success: false), status: status)
        case .method(let allowed):
            let body = Failure(error: "Method Not Allowed", message: nil, success: false)
            var reply = try SandboxReply.json(body, status: 405)
            reply.fields["Allow"] = allowed
            return reply
        case .page(let status, let title): return .page(status, title)
        case .login:
            var reply = SandboxReply.page(401, "Unauthorized")
            reply.fields["WWW-Authenticate"] = "Basic realm=\"GigHive Upload\""
            return reply
        case .tus(let status, let text): return .tus(status, text)
        }
    }

    static func page(_ status: Int, _ title: String) -> String {
        "<!DOCTYPE HTML>\n<html><head><title>\(status) \(title)</title></head><body><h1>\(title)</h1></body></html>\n"
    }
}
