/* Measures what notifying many connections costs the system alone: two threads write 156 bytes to each connection, as a
 * server with two workers notifies the watchers of a key; another process reads them. Prints the p99 of the time until
 * the last message is read, in ms.
 *
 *     fan-out CONNECTIONS SECONDS        one round per second
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 156, WRITERS = 2, EVENTS_MAX = 1024 };

static int connections;
static int *sockets;
static pthread_barrier_t begin, end;

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void *write_share(void *share)
{
    static const char message[MESSAGE_BYTES];
    for (;;) {
        pthread_barrier_wait(&begin);
        for (int at = (int)(long)share; at < connections; at += WRITERS)
            need(write(sockets[at], message, MESSAGE_BYTES) == MESSAGE_BYTES, "write");
        pthread_barrier_wait(&end);
    }
    return NULL;
}

/* Writes the time at which the last message of each round was read to `results`. */
static void read_all(const struct sockaddr_in *address, int results, int rounds)
{
    static struct epoll_event events[EVENTS_MAX];
    static char buffer[65536];
    int queue = epoll_create1(0);
    need(queue >= 0, "epoll_create1");
    for (int number = 0; number < connections; number++) {
        int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
        need(socket_fd >= 0, "socket");
        need(connect(socket_fd, (const struct sockaddr *)address, sizeof *address) == 0, "connect");
        struct epoll_event event = { .events = EPOLLIN, .data.fd = socket_fd };
        need(epoll_ctl(queue, EPOLL_CTL_ADD, socket_fd, &event) == 0, "epoll_ctl");
    }
    while (rounds-- > 0) {
        long left = (long)connections * MESSAGE_BYTES;
        while (left > 0) {
            int count = epoll_wait(queue, events, EVENTS_MAX, -1);
            need(count >= 0, "epoll_wait");
            for (int at = 0; at < count; at++) {
                ssize_t bytes = read(events[at].data.fd, buffer, sizeof buffer);
                need(bytes > 0, "read");
                left -= bytes;
            }
        }
        double at = now_ms();
        need(write(results, &at, sizeof at) == sizeof at, "write");
    }
    exit(0);
}

static int ascending(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv)
{
    int rounds = argc == 3 ? atoi(argv[2]) : 0;
    connections = argc == 3 ? atoi(argv[1]) : 0;
    if (connections < WRITERS || rounds < 1) {
        fprintf(stderr, "usage: fan-out CONNECTIONS SECONDS\n");
        return 2;
    }
    struct rlimit files;
    need(getrlimit(RLIMIT_NOFILE, &files) == 0, "getrlimit");
    files.rlim_cur = files.rlim_max;
    need(setrlimit(RLIMIT_NOFILE, &files) == 0, "setrlimit");
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), pipes[2];
    need(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1024) == 0, "listen");
    need(getsockname(listener, (struct sockaddr *)&address, &length) == 0 && pipe(pipes) == 0, "pipe");
    pid_t reader = fork();
    need(reader >= 0, "fork");
    if (reader == 0)
        read_all(&address, pipes[1], rounds);
    close(pipes[1]);
    sockets = calloc(connections, sizeof *sockets);
    double *delays = calloc(rounds, sizeof *delays);
    need(sockets && delays, "calloc");
    for (int number = 0, on = 1; number < connections; number++) {
        sockets[number] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        need(sockets[number] >= 0, "accept4");
        need(setsockopt(sockets[number], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    }
    pthread_barrier_init(&begin, NULL, WRITERS + 1);
    pthread_barrier_init(&end, NULL, WRITERS + 1);
    for (long share = 0; share < WRITERS; share++) {
        pthread_t thread;
        need(pthread_create(&thread, NULL, write_share, (void *)share) == 0, "pthread_create");
    }
    for (int round = 0; round < rounds; round++) {
        double last;
        sleep(1);
        double begun = now_ms();
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        need(read(pipes[0], &last, sizeof last) == sizeof last, "read");
        delays[round] = last - begun;
    }
    qsort(delays, rounds, sizeof *delays, ascending);
    printf("%.2f\n", delays[(rounds * 99 + 99) / 100 - 1]);
    return waitpid(reader, NULL, 0) == reader ? 0 : 1;
}
