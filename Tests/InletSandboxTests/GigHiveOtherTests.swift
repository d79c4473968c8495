import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct GigHiveOtherTests {
    @Test func `an asset is deleted by its token, once`() async throws {
        try await withGigHive { sandbox, client async throws in
            let answer = try await client.upload(clip())
            let id = try #require(answer.json["asset_id"] as? Int)
            let token = try #require(answer.json["delete_token"] as? String)
            let path = try #require(sandbox.assets().first).path
            func delete(_ body: [String: Any]) async throws -> SandboxClient.Answer {
                try await client.json("/db/delete_media_files.php", body)
            }
            let wrong = try await delete(["asset_id": id, "delete_token": String(token.reversed())])
            #expect(wrong.words == "403 Invalid delete token" && wrong.json["success"] as? Bool == false)
            #expect(try await delete(["file_id": id]).status == 400)
            let done = try await delete(["asset_id": id, "delete_token": token])
            #expect(done.status == 200 && done.json["deleted_count"] as? Int == 1)
            #expect(sandbox.assets().isEmpty && !FileManager.default.fileExists(atPath: path.string))
            #expect(try await delete(["asset_id": id, "delete_token": token]).status == 403)
            let get = try await client.send("GET", "/db/delete_media_files.php")
            #expect(get.status == 405 && get.headers["allow"] == "POST")
        }
    }

    @Test func `the admin deletes many, and is told of those that are not there`() async throws {
        try await withGigHive { sandbox, client async throws in
            var admin = client
            (admin.user, admin.password) = ("admin", "canary-admin")
            var ids: [Int] = []
            for seed in 1...2 {
                ids.append(try await client.upload(clip(seed: UInt64(seed))).json["asset_id"] as? Int ?? 0)
            }
            let answer = try await admin.json("/db/delete_media_files.php", ["asset_ids": ids + [999_999]])
            #expect(answer.status == 200 && answer.json["success"] as? Bool == false)
            #expect(answer.json["deleted_count"] as? Int == 2 && answer.json["error_count"] as? Int == 1)
            #expect(sandbox.assets().isEmpty)
            #expect(try await admin.json("/db/delete_media_files.php", ["asset_ids": []]).status == 400)
        }
    }

    @Test func `a guest's upload goes to the event of the token`() async throws {
        try await withGigHive { sandbox, client async throws in
            var guest = client
            guest.token = "canary-guest"
            let url = try await guest.sent(clip())
            let given: [String: Any] = ["label": "Dance", "event_date": "1999-01-01", "org_name": "Elsewhere"]
            for terms: Any in ["true", 1, false] {
                let answer = try await guest.finalize(url, fields: given.merging(["tos_accepted": terms]) { $1 })
                #expect(answer.words == "400 tos_accepted must be true")
            }
            let answer = try await guest.finalize(url, fields: given.merging(["tos_accepted": true]) { $1 })
            #expect(answer.status == 201 && answer.json["upload_job_id"] is Int)
            let nonce = try #require(answer.json["status_nonce"] as? String)
            let entry = try #require(sandbox.assets().first?.entries.first)
            #expect(entry.eventDate == "2026-05-06" && entry.orgName == "Anna & Ben" && entry.label == "Dance")
            let status = try await client.send("GET", "/api/guest-status.php?nonce=\(nonce)")
            #expect(status.json["status"] as? String == "pending")
        }
    }

    @Test(arguments: [
        ("canary-other", 404, "invalid or expired"), (String(repeating: "t", count: 129), 400, "invalid token"),
    ])
    func `a token that is none is refused at finalize`(_ token: String, _ status: Int, _ error: String) async throws {
        try await withGigHive { _, client async throws in
            var guest = client
            guest.token = token
            let url = try await guest.sent(clip())
            let answer = try await guest.finalize(url, fields: ["label": "x", "tos_accepted": true])
            #expect(answer.status == status && answer.json["error"] as? String == error)
            #expect(try await client.send("GET", "/api/upload-token.php?token=\(token)").status == 404)
        }
    }

    @Test func `other paths answer as the real ones do`() async throws {
        try await withGigHive { _, client async throws in
            var nobody = client
            nobody.user = nil
            #expect(try await nobody.send("GET", "/db/health.php?x=1").status == 200)
            #expect(try await nobody.send("GET", "/api/upload-token.php?token=canary-guest").status == 200)
            #expect(try await client.send("GET", "/api/media-files").status == 501)
            #expect(try await client.send("GET", "/api/uploads/77").status == 404)
            #expect(try await client.send("DELETE", "/api/uploads/77").status == 404)
        }
    }

    /// A fault, where, and the beginning of its answer.
    static let replies: [(FaultReply, GigHiveOperation, String)] = [
        (.gigHive(500, error: "Server error", message: "DB connection failed: \"x\""), .upload, "500 DB connection"),
        (.page(503, "Service Unavailable"), .upload, "503 "), (.page(408, "Request Timeout"), .upload, "408 "),
        (.cloudflareLimit, .upload, "413 "),
        (.tus(423, "ERR_UPLOAD_LOCKED: file currently locked"), .tusCreate, "423 "),
    ]

    @Test(arguments: replies)
    func `each layer in front can answer in its own voice`(
        _ reply: FaultReply, _ operation: GigHiveOperation, _ words: String
    ) async throws {
        for action in [FaultAction.reply(reply), .earlyReply(reply)] {
            try await withGigHive(faults: GigHiveFault(action, at: operation)) { sandbox, client async throws in
                let answer = operation == .upload ? try await client.upload(clip()) : try await client.create(10)
                #expect(answer.words.hasPrefix(words) && answer.text == reply.body)
                #expect(sandbox.assets().isEmpty && sandbox.faults.injected(at: operation) == 1)
                #expect((answer.headers["cf-ray"] != nil) == (reply == .cloudflareLimit))
            }
        }
    }

    @Test(arguments: [FaultAction.loseAnswer, .replyAfterWork(.page(524, "A timeout occurred"))])
    func `an upload can arrive without its answer`(_ action: FaultAction) async throws {
        try await withGigHive(faults: GigHiveFault(action, at: .finalize)) { sandbox, client async throws in
            let url = try await client.sent(clip())
            let id = url.split(separator: "/").last ?? ""
            let body = #"{"upload_id":"\#(id)","label":"x"}"#
            let fields = client.authorization.flatMap { ["-H", "\($0.key): \($0.value)"] }
            let status = try await SandboxClient.curl(
                ["-m", "120", "-d", body, "-H", "Content-Type: application/json"] + fields
                    + [client.http.origin + "/api/uploads/finalize"])
            #expect(action == .loseAnswer ? [52, 56].contains(status) : status == 0)
            #expect(sandbox.assets().map(\.entries.count) == [1])
            let again = try await client.finalize(url)
            #expect(again.status == 201 && again.json["delete_token"] == nil)
            #expect(sandbox.counts()["finalize"] == 2)
        }
    }
}
