import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// The login: renewed once for all, kept before it is used, and never dropped for a passing reason.
@Suite struct VOPITokenTests {
    private static func pair(_ number: Int, life: Int = 900) -> VOPIServer.Reply {
        .json(
            200,
            #"{"accessToken":"access-\#(number)","refreshToken":"refresh-\#(number)","expiresIn":\#(life),"tokenType":"Bearer"}"#
        )
    }

    private static func refused(_ code: String, _ message: String = "x") -> VOPIServer.Reply {
        .json(401, #"{"error":"\#(code)","message":"\#(message)"}"#)
    }

    /// A server that rotates: each refresh token works once, then it is revoked.
    private static func rotating() throws -> VOPIClientPlace {
        try VOPIClientPlace { asked, count in
            let expected = count == 0 ? VOPIClientPlace.seed : "refresh-\(count)"
            guard asked.json["refreshToken"].text == expected else { return refused("REFRESH_TOKEN_REVOKED") }
            return pair(count + 1)
        }
    }

    /// A server that answers once the gate is open.
    private static func gated() throws -> (VOPIClientPlace, DispatchSemaphore) {
        let gate = DispatchSemaphore(value: 0)
        let place = try VOPIClientPlace { _, _ in
            _ = gate.wait(timeout: .now() + 180)
            return pair(1)
        }
        return (place, gate)
    }

    /// The access tokens that logins give when all are asked at once.
    private static func tokens(_ logins: [VOPITokens], after refused: Secret? = nil) async throws -> Set<String> {
        try await withThrowingTaskGroup(of: String.self) { group in
            for login in logins { group.addTask { try await login.access(after: refused).reveal() } }
            return try await group.reduce(into: []) { $0.insert($1) }
        }
    }

    // MARK: - Renewing

    @Test func `a login begins with the configured token and goes on with what it brought`() async throws {
        let (place, clock) = (try Self.rotating(), HandClock())
        let login = try place.login(clock)
        #expect(try await login.access().reveal() == "access-1")
        #expect(try await login.access().reveal() == "access-1")
        clock.advance(.seconds(629))
        #expect(try await login.access().reveal() == "access-1")
        clock.advance(.seconds(2))
        #expect(try await login.access().reveal() == "access-2")
        #expect(place.server.asked.map(\.path) == ["/api/v1/auth/refresh", "/api/v1/auth/refresh"])
        // After a restart the pair on the disk is the login, although the configured token is still there.
        #expect(try await place.login(clock).access().reveal() == "access-2")
        clock.advance(.seconds(700))
        #expect(try await place.login(clock).access().reveal() == "access-3")
    }

    @Test func `a hundred at once renew once`() async throws {
        let place = try Self.rotating()
        let login = try place.login()
        #expect(try await Self.tokens((0..<100).map { _ in login }) == ["access-1"])
        #expect(place.server.asked.count == 1)
    }

    @Test func `two processes renew once`() async throws {
        let (place, clock) = (try Self.rotating(), HandClock())
        #expect(try await Self.tokens((0..<8).map { _ in try place.login(clock) }) == ["access-1"])
        #expect(place.server.asked.count == 1)
    }

    @Test func `a refused token is renewed once for all who were refused`() async throws {
        let place = try Self.rotating()
        let login = try place.login()
        let first = try await login.access()
        #expect(try await Self.tokens((0..<20).map { _ in login }, after: first) == ["access-2"])
        #expect(place.server.asked.count == 2)
    }

    @Test func `the new pair is on the disk before it is used, with the one before beside it`() async throws {
        let place = try Self.rotating()
        let login = try place.login()
        let first = try await login.access()
        _ = try await login.access(after: first)
        let kept = place.tokens.appending("here.json")
        let previous = place.tokens.appending("here.json.previous")
        #expect(try String(contentsOfFile: kept.string, encoding: .utf8).contains("\"refresh-2\""))
        #expect(try String(contentsOfFile: previous.string, encoding: .utf8).contains("\"refresh-1\""))
        for path in [kept, previous] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test func `a caller who is cancelled does not cut a renewal off`() async throws {
        let (place, gate) = try Self.gated()
        let login = try place.login()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try? await login.access() }
            try await eventually("the server is asked") { place.server.asked.count == 1 }
            group.cancelAll()
            gate.signal()
            try await group.waitForAll()
        }
        #expect(try await place.store().pair()?.refreshToken == Secret("refresh-1"))
        #expect(try await login.access().reveal() == "access-1")
        #expect(place.server.asked.count == 1)
    }

    @Test func `who waits for another's renewal leaves at once when cancelled`() async throws {
        let (place, gate) = try Self.gated()
        let login = try place.login()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await login.access() }
            try await eventually("the server is asked") { place.server.asked.count == 1 }
            let error = await withTaskGroup(of: DeliveryError?.self) { followers in
                followers.addTask { await failure { () throws(DeliveryError) in try await login.access() } }
                followers.cancelAll()
                return await followers.next() ?? nil
            }
            #expect(error == .stopping)
            gate.signal()
            try await group.waitForAll()
        }
    }

    @Test func `a pair that the disk does not take is not used, and kept at the next chance`() async throws {
        let (place, gate) = try Self.gated()
        let login = try place.login()
        // While the server answers, a folder comes to stand where the pair belongs.
        let obstacle = place.tokens.appending("here.json")
        async let error = failure { () throws(DeliveryError) in try await login.access() }
        try await eventually("the server is asked") { place.server.asked.count == 1 }
        try FileManager.default.createDirectory(
            atPath: obstacle.appending("x").string, withIntermediateDirectories: true)
        gate.signal()
        #expect(await error?.code == .destinationUnwritable)
        try FileManager.default.removeItem(atPath: obstacle.string)
        #expect(try await login.access().reveal() == "access-1")
        #expect(place.server.asked.count == 1)
        #expect(try await place.store().pair()?.accessToken == Secret("access-1"))
    }
}
