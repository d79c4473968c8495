import InletCore
import InletLinux
import Testing

struct UserNameTests {
    @Test(
        arguments: [("root", .found(0)), ("nobody-has-this-name", .unknown), ("", .unknown)] as [(String, UserLookup)])
    func `users are found by name`(_ name: String, _ answer: UserLookup) {
        #expect(FileOwner.user(named: name) == answer)
    }
}
