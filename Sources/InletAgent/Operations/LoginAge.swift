package import InletCore

/// Logins that end when they are not renewed: a person should hear of it while there is time to do something.
package enum LoginAge {
    /// VOPI ends a login that was not renewed for seven days; renewals are tried every day.
    private static let limit = Duration.seconds(5 * 86_400)

    /// What to say of a login that was last renewed at `time`; nil while all is well.
    package static func warning(_ time: WallTime, remedy: String, now: WallTime) -> String? {
        let age = now - time
        guard age > limit else { return nil }
        return "the login was last renewed \(age.components.seconds / 86_400) days ago, and ends after 7 days without: "
            + "see why it cannot be renewed, or \(remedy)"
    }
}
