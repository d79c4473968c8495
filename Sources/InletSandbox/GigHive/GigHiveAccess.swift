import Foundation
import HTTPTypes
import InletCore

/// Who asks: the three logins by HTTP Basic (RFC 7617), and guests by their token.
struct GigHiveAccess: Sendable {
    enum User: String, Sendable {
        case admin
        case uploader
        case viewer
    }

    let logins: GigHiveLogins

    /// The user, or nil for a guest or an open call.
    ///
    /// - Throws: `login`, for a valid viewer too.
    func check(_ route: GigHiveRoute, _ fields: HTTPFields) throws(GigHiveRefusal) -> User? {
        switch route.access {
        case .everybody: return nil
        case .loginOrToken where fields[.uploadToken] != nil: return nil
        case .login, .loginOrToken:
            guard let user = user(fields), user != .viewer else { throw .login }
            return user
        }
    }

    private func user(_ fields: HTTPFields) -> User? {
        guard let given = fields[.authorization], given.hasPrefix("Basic "),
            let data = Data(base64Encoded: String(given.dropFirst(6)))
        else { return nil }
        let halves = String(decoding: data, as: UTF8.self)
            .split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2, let user = User(rawValue: String(halves[0])) else { return nil }
        let password =
            switch user {
            case .admin: logins.admin
            case .uploader: logins.uploader
            case .viewer: logins.viewer
            }
        return SigningSecret.areEqual(String(halves[1]), password.reveal()) ? user : nil
    }
}

extension HTTPField.Name {
    /// The name is a valid token, so the fallback is never taken.
    static let uploadToken = HTTPField.Name("X-Upload-Token") ?? .eTag
}
