import InletCore
import Testing

@testable import InletDashboard

/// Who is let in, and how often somebody may try.
@Suite struct LoginTests {
    private let start = ContinuousClock.now
    private let one: [UInt8] = [10, 0, 0, 1]
    private let other: [UInt8] = [10, 0, 0, 2]

    @Test func `some wrong tries cost nothing, and each one after them twice as much`() {
        var tries = LoginThrottle()
        for _ in 1..<LoginThrottle.free { #expect(tries.failed(one, at: start) == .none) }
        #expect(tries.wait(one, at: start) == nil)
        #expect(tries.failed(one, at: start) == .wait(.seconds(30)))
        #expect(tries.wait(one, at: start.advanced(by: .seconds(10))) == .seconds(20))
        #expect(tries.wait(other, at: start) == nil)
        let later = start.advanced(by: .seconds(30))
        #expect(tries.wait(one, at: later) == nil)
        #expect(tries.failed(one, at: later) == .wait(.seconds(60)))
        for _ in 0..<20 { _ = tries.failed(one, at: later) }
        #expect(tries.wait(one, at: later) == LoginThrottle.longestWait)
    }

    @Test func `who gets it right, or stays away for long, begins anew`() {
        var tries = LoginThrottle()
        for _ in 0..<LoginThrottle.free { _ = tries.failed(one, at: start) }
        tries.succeeded(one)
        #expect(tries.wait(one, at: start) == nil && tries.failed(one, at: start) == .none)
        for _ in 0..<LoginThrottle.free { _ = tries.failed(other, at: start) }
        #expect(tries.failed(other, at: start.advanced(by: LoginThrottle.memory)) == .none)
    }

    @Test func `many wrong tries from many addresses make everybody wait, until the minute is over`() {
        var tries = LoginThrottle()
        for number in 1..<LoginThrottle.freeTogether {
            #expect(tries.failed([9, 9, UInt8(number >> 8), UInt8(number & 255)], at: start) == .none)
        }
        #expect(tries.wait(one, at: start) == nil)
        #expect(tries.failed([8, 8, 8, 8], at: start.advanced(by: .seconds(20))) == .waitTogether(.seconds(40)))
        #expect(tries.wait(one, at: start.advanced(by: .seconds(20))) == .seconds(40))
        #expect(tries.wait(one, at: start.advanced(by: .seconds(60))) == nil)
    }

    @Test func `a session lives while it is used, and there are not more than some`() {
        var sessions = LoginSessions()
        sessions.open([1], .full, at: start)
        let nearly = start.advanced(by: LoginSessions.life - .seconds(1))
        #expect(sessions.access(of: [1], at: nearly) == .full)
        #expect(sessions.access(of: [1], at: start.advanced(by: LoginSessions.life + .seconds(1))) == .full)
        #expect(sessions.access(of: [2], at: start) == nil)
        sessions.open([2], .read, at: nearly)
        #expect(sessions.access(of: [2], at: nearly.advanced(by: LoginSessions.life)) == nil)
        for number in 0..<UInt8(LoginSessions.most) {
            sessions.open([3, number], .read, at: nearly.advanced(by: .seconds(60 + Int(number))))
        }
        let after = nearly.advanced(by: .seconds(300))
        #expect(sessions.access(of: [1], at: after) == nil)
        #expect(sessions.access(of: [3, 0], at: after) == .read)
        sessions.close([3, 0])
        #expect(sessions.access(of: [3, 0], at: after) == nil)
    }

    private static let settings = DashboardSettings(
        listen: ListenAddress(host: "127.0.0.1", port: 1), token: Secret("the-token"), password: Secret("the-password"),
        readOnlyToken: Secret("the-reader"))

    @Test(
        arguments: [
            ("the-token", true, .full), ("the-token", false, .full), ("the-password", false, .full),
            ("the-password", true, nil), ("the-reader", true, .read), ("the-reader", false, .read), ("", true, nil),
            ("the-toke", true, nil), ("the-token ", true, nil), ("THE-TOKEN", true, nil),
        ] as [(String, Bool, Access?)])
    func `a secret opens what it is for`(secret: String, asToken: Bool, access: Access?) {
        #expect(Credentials(Self.settings).access(secret, asToken: asToken) == access)
    }

    @Test func `only a long token is one that nobody can guess`() {
        let long = String(repeating: "k", count: Credentials.unguessable)
        var settings = Self.settings
        (settings.token, settings.password) = (Secret(long), Secret(long + "!"))
        let credentials = Credentials(settings)
        #expect(credentials.access(long, asToken: true, ifUnguessable: true) == .full)
        #expect(credentials.access(long, asToken: false, ifUnguessable: true) == .full)
        for other in [long + "!", "the-reader", long + "k", String(long.dropLast()), ""] {
            #expect(credentials.access(other, asToken: false, ifUnguessable: true) == nil, "\(other)")
        }
    }

    @Test func `what is asked for is what is configured`() {
        var settings = Self.settings
        #expect(Credentials(settings).login == .either)
        settings.password = nil
        #expect(Credentials(settings).login == .token)
        (settings.token, settings.password) = (nil, Secret("the-password"))
        #expect(Credentials(settings).login == .password)
        settings.password = nil
        #expect(Credentials(settings).login == .none)
    }
}
