import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Captured exchanges of both generations, each served to our client once.
@Suite struct VOPIReplayTests {
    private static let refreshPath = "/api/v1/auth/refresh"

    @Test func `there are vectors of both generations`() {
        for generation in VOPIGeneration.allCases {
            #expect(VOPIVector.all.count { $0.generation == generation && $0.concluded != nil } >= 7)
        }
    }

    @Test(arguments: VOPIVector.all) func `a captured exchange is concluded as it should be`(
        _ vector: VOPIVector
    ) async throws {
        let place = try VOPIClientPlace { asked, _ in Self.reply(to: asked, vector) }
        let key = vector.headers["authorization"] == nil ? vector.headers["x-api-key"] : nil
        let isLogin = vector.path == Self.refreshPath
        if isLogin {
            try place.folder.write((vector.body["refreshToken"].text ?? "").utf8, to: "seed")
        } else if key == nil {
            try await place.keep()
        }
        let concluded = await VOPIReplay(vector: vector, api: try place.api(key: key)).conclude()
        if let expected = vector.concluded {
            #expect(concluded == expected)
        } else {
            #expect(Self.isPlausible(concluded, vector))
        }
        let asked = place.server.asked
        for one in asked { Self.check(one) }
        try Self.checkDeletes(asked, vector)
        if !isLogin {
            #expect(place.server.refreshes.count <= 1)
            // Whatever was answered, nobody is logged out.
            #expect(try await place.store().pair()?.refreshToken.isEmpty == (key == nil ? false : nil))
        }
        guard vector.isAsWeSendIt else { return }
        let sent = try #require(asked.last { $0.method == vector.method && $0.path == vector.path })
        #expect(sent.target == vector.target)
        #expect(sent.json == vector.body)
    }

    /// The vector's answer to its own request, and what such a server says to the others.
    private static func reply(to asked: VOPIServer.Asked, _ vector: VOPIVector) -> VOPIServer.Reply {
        if asked.method == vector.method, asked.path == vector.path {
            return VOPIServer.Reply(status: vector.status, headers: vector.answerHeaders, body: vector.answer)
        }
        if asked.path == refreshPath {
            return .json(200, #"{"accessToken":"access-1","refreshToken":"refresh-1","expiresIn":900}"#)
        }
        return VOPIAnswers.generation(vector.generation, asked)
    }

    /// What holds for every answer, judged or not.
    private static func isPlausible(_ concluded: String, _ vector: VOPIVector) -> Bool {
        let isError = ["retry ", "outage ", "giveUp ", "credentials "].contains { concluded.hasPrefix($0) }
        switch vector.status {
        case 200..<300: return !isError
        case 401: return concluded.hasPrefix("credentials ") || concluded.hasPrefix("outage ")
        case 404: return !concluded.hasPrefix("credentials ")
        case 429, 500...: return concluded.hasPrefix("retry ") || concluded.hasPrefix("outage ") || !isError
        default: return isError
        }
    }

    private static func check(_ asked: VOPIServer.Asked) {
        let isOpen = asked.path == "/ready" || asked.path == refreshPath
        let credentials = ["authorization", "x-api-key"].filter { asked.headers[$0] != nil }
        #expect(credentials.count == (isOpen ? 0 : 1), "\(asked.method) \(asked.target)")
        #expect(asked.headers["authorization"]?.hasPrefix("Bearer ") ?? true)
        #expect((asked.headers["content-type"] == "application/json") == !asked.body.isEmpty)
        #expect(asked.headers["content-type"] == nil || !asked.body.isEmpty)
        for name in ["transfer-encoding", "origin", "expect"] { #expect(asked.headers[name] == nil) }
    }

    /// Before a DELETE the server has said which generation it is.
    private static func checkDeletes(_ asked: [VOPIServer.Asked], _ vector: VOPIVector) throws {
        guard let delete = asked.firstIndex(where: { $0.method == "DELETE" }) else { return }
        let probe = try #require(asked.firstIndex { $0.path.hasSuffix("/cancel") && $0.path != vector.path })
        #expect(probe < delete)
    }
}

/// Answers that more than one test needs.
enum VOPIAnswers {
    static let missingJob = #"{"error":"NOT_FOUND","message":"Job x not found","statusCode":404}"#

    static func missingRoute(_ asked: VOPIServer.Asked) -> String {
        #"{"message":"Route \#(asked.method):\#(asked.path) not found","error":"Not Found","statusCode":404}"#
    }

    /// How a server of `generation` answers the cancelling of a job that does not exist, and everything else.
    static func generation(_ generation: VOPIGeneration, _ asked: VOPIServer.Asked) -> VOPIServer.Reply {
        let isCancel = asked.method == "POST" && asked.path.hasSuffix("/cancel")
        return .json(404, isCancel && generation == .newer ? missingJob : missingRoute(asked))
    }
}
