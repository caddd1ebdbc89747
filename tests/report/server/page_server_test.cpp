// The page server: which requests get the page, and which do not.
#include "report/server/page_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tacho::report {
namespace {

std::string status(std::string_view head) {
  const std::string text = answer(head, "<p>page</p>", "abc123", 8050);
  return text.substr(0, text.find("\r\n"));
}

TEST(PageServer, AnswersOnlyWhoKnowsTheToken) {
  EXPECT_EQ(status("GET /?token=abc123 HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status("GET /?token=abc123 HTTP/1.1\r\nhost: localhost:8050\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(status("GET /?token= HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(status("GET /?token=abc124 HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(status("GET /?token=abc1234 HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 403 Forbidden");
}

TEST(PageServer, RefusesOtherNamesOfThisMachine) {
  EXPECT_EQ(status("GET /?token=abc123 HTTP/1.1\r\nHost: evil.example:8050\r\n"), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(status("GET /?token=abc123 HTTP/1.1\r\n"), "HTTP/1.1 403 Forbidden");
}

TEST(PageServer, RefusesWhatIsNoRequestForThePage) {
  EXPECT_EQ(status("POST /?token=abc123 HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(status("GET /etc/passwd?token=abc123 HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n"), "HTTP/1.1 404 Not Found");
  for (const char* nonsense : {"", " ", "GET", "GET /", "\r\n\r\n", "GET / FTP/1\r\n", "  HTTP/1.1\r\n"})
    EXPECT_NE(status(nonsense), "HTTP/1.1 200 OK") << nonsense;
  EXPECT_EQ(
      answer("HEAD /?token=abc123 HTTP/1.1\r\nHost: 127.0.0.1:8050\r\n", "<p>page</p>", "abc123", 8050).find("<p>"),
      std::string::npos);
}

std::string request(uint16_t port, const std::string& text) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  // In two pieces: heads come as the network likes.
  EXPECT_GT(send(socket, text.data(), 5, MSG_NOSIGNAL), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  send(socket, text.data() + 5, text.size() - 5, MSG_NOSIGNAL);
  std::string out;
  char buffer[65536];
  for (ssize_t got; (got = recv(socket, buffer, sizeof buffer, 0)) > 0;) out.append(buffer, static_cast<size_t>(got));
  close(socket);
  return out;
}

TEST(PageServer, ServesLargePagesOverTheSocketUntilStopped) {
  const std::string page(5'000'000, 'x');
  auto server = PageServer::listen_anywhere(page);
  ASSERT_TRUE(server) << server.error().message;
  int stop[2];
  ASSERT_EQ(pipe(stop), 0);
  std::thread serving([&] { EXPECT_TRUE(server->serve(stop[0])); });
  const std::string host = "Host: 127.0.0.1:" + std::to_string(server->port()) + "\r\nConnection: close\r\n\r\n";
  const std::string path = server->url().substr(server->url().rfind('/'));
  const std::string got = request(server->port(), "GET " + path + " HTTP/1.1\r\n" + host);
  EXPECT_EQ(got.size() - got.find("\r\n\r\n") - 4, page.size());
  EXPECT_NE(request(server->port(), "GET / HTTP/1.1\r\n" + host).find(" 403 "), std::string::npos);
  EXPECT_NE(request(server->port(), "GET /" + std::string(20000, 'a')).find(" 431 "), std::string::npos);
  // The same port again is taken, and it says so.
  const auto second = PageServer::listen("", server->port());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("--gui"), std::string::npos);
  ASSERT_EQ(write(stop[1], "x", 1), 1);
  serving.join();
  close(stop[0]);
  close(stop[1]);
}

// Strangers that send a byte and wait take no place from users with the token, and do not stay.
TEST(PageServer, AnswersAmongManyWhoWait) {
  auto server = PageServer::listen_anywhere("<p>page</p>");
  ASSERT_TRUE(server) << server.error().message;
  int stop[2];
  ASSERT_EQ(pipe(stop), 0);
  std::thread serving([&] { EXPECT_TRUE(server->serve(stop[0])); });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> strangers;
  for (int i = 0; i < 300; ++i) {
    const int stranger = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    send(stranger, "G", 1, MSG_NOSIGNAL);
    strangers.push_back(stranger);
  }
  const auto began = std::chrono::steady_clock::now();
  const std::string host = "Host: 127.0.0.1:" + std::to_string(server->port()) + "\r\nConnection: close\r\n\r\n";
  const std::string path = server->url().substr(server->url().rfind('/'));
  for (int i = 0; i < 3; ++i)
    EXPECT_NE(request(server->port(), "GET " + path + " HTTP/1.1\r\n" + host).find(" 200 "), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(3));
  for (const int stranger : strangers) close(stranger);
  ASSERT_EQ(write(stop[1], "x", 1), 1);
  serving.join();
  close(stop[0]);
  close(stop[1]);
}

}  // namespace
}  // namespace tacho::report
